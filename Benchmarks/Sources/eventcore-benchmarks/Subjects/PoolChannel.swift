// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A pool in the place of one event thread. Its handlers count without a lock, so one thread has to
/// get all: of two threads a balancer of the user's own chooses always the first; a shared pool has
/// one.
final class PoolChannel<Event: BenchmarkEvent>: Channel {
  private struct FirstBalancer: EventPoolBalancing {
    func chooseThread(for choice: borrowing EventPoolChoice) -> Int { 0 }
  }

  private let central = EventCentral(core: .lockFree)
  private let pool: EventPool<EventThread>

  init(isShared: Bool, _ handlers: [Handler]) {
    let balancer: any EventPoolBalancing =
      isShared ? EventPoolSharedBalancer() : FirstBalancer()
    pool = EventPool(capacity: isShared ? 1 : 2, balancer: balancer, on: central) { _ in
      let thread = EventThread()
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

  func end() {
    pool.cancel()
    pool.join()
  }
}
