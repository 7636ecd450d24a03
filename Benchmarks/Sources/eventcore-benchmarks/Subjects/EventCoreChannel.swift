// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// EventCore itself, on either core: an event thread for each consumer, on a central of their own.
final class EventCoreChannel<Event: BenchmarkEvent>: BatchChannel, LaneChannel {
  private let central: EventCentral
  private let threads: [EventThread]
  private let priorities = EventPriority.inOrder
  private let observer: (any Sendable)?

  init(
    _ core: EventCentral.Core, _ consumers: [[Handler]], mailbox: EventMailboxCapacity = .unbounded,
    observedBy observe: (EventCentral) -> (any Sendable)? = { _ in nil }
  ) {
    let central = EventCentral(core: core)
    self.central = central
    observer = observe(central)
    threads = consumers.map { handlers in
      let thread = EventThread(on: central, mailbox: mailbox, name: "consumer")
      for handler in handlers {
        thread.addEventCallback(handler.call, forEventType: Event.self)
      }
      return thread
    }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    event.queue(on: central)
  }

  func send(batch: [Event]) {
    batch.queue(on: central)
  }

  /// Batches of 64 of a sequence that does not keep its elements.
  func sendLazily(_ count: Int, _ supply: Event.Supply) where Event: NumberEvent {
    var made = Made(supply: supply)
    for _ in 0..<count / 64 {
      made.left = 64
      made.queue(on: central)
      for _ in 0..<64 { _ = made.supply.next() }
    }
  }

  private struct Made: Sequence, IteratorProtocol {
    var supply: Event.Supply
    var left = 0

    mutating func next() -> Event? {
      guard left > 0 else { return nil }
      left -= 1
      return supply.next()
    }
  }

  @inline(__always)
  func send(_ event: consuming Event, lane: Int) {
    if lane < 5 {
      event.stack(priority: priorities[lane], on: central)
    } else {
      event.queue(priority: priorities[lane - 5], on: central)
    }
  }

  func end() {
    for thread in threads {
      thread.cancel()
      thread.join()
    }
  }
}
