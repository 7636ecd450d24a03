// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Which lane an event goes to, as tests write it.
public struct TestLane: Sendable, Hashable {
  public let method: EventDispatchMethod
  public let priority: EventPriority

  /// All ten, in the order in which D1 empties them.
  public static let all: [TestLane] = [EventDispatchMethod.stack, .queue].flatMap { method in
    EventPriority.inOrder.map { TestLane(method: method, priority: $0) }
  }
}

/// D1 to D3 in twenty lines: what a mailbox is, without threads.
public struct LaneModel<Event> {
  private var lanes: [[Event]] = Array(repeating: [], count: 10)

  public init() {}

  public mutating func post(_ event: Event, lane: Int) {
    lanes[lane].append(event)
  }

  public mutating func take() -> Event? {
    guard let lane = lanes.firstIndex(where: { !$0.isEmpty }) else { return nil }
    return lane < 5 ? lanes[lane].removeLast() : lanes[lane].removeFirst()
  }

  public mutating func takeAll() -> [Event] {
    var taken: [Event] = []
    while let event = take() { taken.append(event) }
    return taken
  }
}

extension Eventable {
  /// Dispatches to a lane of a central.
  @discardableResult
  public func dispatch(_ lane: TestLane, on central: EventCentral) -> Int {
    switch lane.method {
    case .stack: stack(priority: lane.priority, on: central)
    case .queue: queue(priority: lane.priority, on: central)
    }
  }
}
