// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A stream with unbounded buffering and a task for each consumer.
final class AsyncStreamChannel<Event: BenchmarkEvent>: Channel {
  private let continuations: [AsyncStream<Event>.Continuation]

  init(_ consumers: [[Handler]]) {
    continuations = consumers.map { handlers in
      let (stream, continuation) = AsyncStream.makeStream(
        of: Event.self, bufferingPolicy: .unbounded)
      Task.detached {
        for await event in stream {
          for handler in handlers {
            handler(event)
          }
        }
      }
      return continuation
    }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    let event = event
    for continuation in continuations {
      continuation.yield(event)
    }
  }

  func end() {
    for continuation in continuations {
      continuation.finish()
    }
  }
}
