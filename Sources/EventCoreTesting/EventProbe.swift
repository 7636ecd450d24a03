// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

/// A receiver that records the events of one type that are dispatched on a central.
///
/// ```swift
/// let scores = EventProbe(ScoreChanged.self, on: world)
/// Hit(player: "Ann", points: 10).queue(on: world)
/// world.run()
/// #expect(scores.events.map(\.points) == [10])
/// ```
///
/// It listens on the listener thread of the central, in a deterministic one inside `run(limit:)`, and ends with its last
/// reference.
///
/// **Threads**: any, for every member.
public final class EventProbe<E: Eventable>: Sendable {
  // The listener retains the record and not the probe.
  private let record = Record()
  private let handle: any EventListenerHandling

  private final class Record: Sendable {
    let events = Mutex<[E]>([])
    let (news, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  /// Makes a probe, which gets what is dispatched from now on, and not what the central keeps (`keepNewest(on:)`).
  ///
  /// - Parameters:
  ///   - type: The exact type of event.
  ///   - central: Where they are dispatched. One whose listener has ended, as by its `drain(until:)`, traps.
  ///   - matches: Which of them to record; nil for all.
  public convenience init(
    _ type: E.Type = E.self, on central: EventCentral = .shared, where matches: (@Sendable (E) -> Bool)? = nil
  ) {
    self.init(listeningOn: central, where: matches)
    require(isListening, Self.deaf)
  }

  init(listeningOn central: EventCentral, where matches: (@Sendable (E) -> Bool)?) {
    handle = central.addProbe { [record] (event: E) in
      guard matches?(event) != false else { return }
      record.events.withLock { $0.append(event) }
      record.signal.yield()
    }
  }

  /// False if the listener of the central has ended.
  var isListening: Bool { handle.isActive }

  /// Why it gets nothing then.
  static var deaf: String {
    """
    An EventProbe, next and expect(no:) hear a \(E.self) by the central's own listener, and that of this central has \
    ended, by drain(until:) or listener.end(): look before that end, or on another central.
    """
  }

  deinit {
    handle.remove()
  }

  /// The events so far, in the order in which they were handled.
  public var events: [E] { record.events.withLock { $0 } }

  /// Returns the events so far, and forgets them.
  @discardableResult
  public func take() -> [E] {
    record.events.withLock { events in
      defer { events = [] }
      return events
    }
  }

  /// Waits until an event has come, at most for a time of the system's clock. False if none has. Throws if the task is
  /// cancelled before.
  func hasEvent(within duration: Duration) async throws -> Bool {
    await withTaskGroup(of: Void.self) { [record] group in
      group.addTask {
        for await _ in record.news where !record.events.withLock({ $0.isEmpty }) { return }
      }
      // A hundred years at most, which the runtime's clock has room for.
      group.addTask { try? await Task.sleep(for: min(duration, .seconds(100 * 365 * 86_400))) }
      await group.next()
      group.cancelAll()
    }
    guard events.isEmpty else { return true }
    try Task.checkCancellation()
    return false
  }
}
