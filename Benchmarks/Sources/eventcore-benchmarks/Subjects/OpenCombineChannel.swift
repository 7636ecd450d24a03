// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import OpenCombine

/// A subject with a sink for each handler. It calls them on the thread that sends: nothing crosses
/// threads, and the sender waits for all handlers.
final class OpenCombineChannel<Event: BenchmarkEvent>: Channel, @unchecked Sendable {
  static var staysOnSender: Bool { true }

  // All fields are constant; the subject locks itself.
  private let subject = PassthroughSubject<Event, Never>()
  private let sinks: [AnyCancellable]

  init(_ consumers: [[Handler]]) {
    sinks = consumers.joined().map { [subject] handler in
      subject.sink { event in handler(event) }
    }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    subject.send(event)
  }

  func end() {
    for sink in sinks {
      sink.cancel()
    }
  }
}
