// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import NIOCore
import NIOPosix

/// An event loop for each consumer, one `execute` for each event (or batch).
final class NIOChannel<Event: BenchmarkEvent>: BatchChannel {
  private let group: MultiThreadedEventLoopGroup
  private let consumers: [(loop: any EventLoop, handlers: [Handler])]

  init(_ consumers: [[Handler]]) {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: consumers.count)
    self.group = group
    self.consumers = consumers.map { (group.next(), $0) }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    let event = event
    for (loop, handlers) in consumers {
      loop.execute {
        for handler in handlers {
          handler(event)
        }
      }
    }
  }

  func send(batch: [Event]) {
    for (loop, handlers) in consumers {
      loop.execute {
        for event in batch {
          for handler in handlers {
            handler(event)
          }
        }
      }
    }
  }

  func end() {
    do {
      try group.syncShutdownGracefully()
    } catch {
      fatalError(
        """
        NIO's event loops are ended before the next shape begins, so that none of them runs on in its figures; \
        this time that failed with \(error): measure without them (--subject).
        """)
    }
  }
}
