// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A serial queue for each consumer, one `async` for each event (or batch).
final class DispatchQueueChannel<Event: BenchmarkEvent>: BatchChannel {
  private let consumers: [(queue: DispatchQueue, handlers: [Handler])]

  init(_ consumers: [[Handler]]) {
    self.consumers = consumers.map { (DispatchQueue(label: "consumer"), $0) }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    let event = event
    for (queue, handlers) in consumers {
      queue.async {
        for handler in handlers {
          handler(event)
        }
      }
    }
  }

  func send(batch: [Event]) {
    for (queue, handlers) in consumers {
      queue.async {
        for event in batch {
          for handler in handlers {
            handler(event)
          }
        }
      }
    }
  }

  func end() {
    for (queue, _) in consumers {
      queue.sync {}
    }
  }
}
