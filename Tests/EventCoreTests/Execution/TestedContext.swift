// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Where a listener runs, as tests enumerate it: a place that it asks for, or the context in which
/// it is registered.
enum TestedContext: CaseIterable, CustomTestStringConvertible {
  case place(ListenerPlace)
  case eventThread
  case actor

  static let allCases = ListenerPlace.allCases.map(Self.place) + [.eventThread, .actor]

  var testDescription: String {
    switch self {
    case .place(let place): place.testDescription
    case .eventThread: "inside a handler of an event thread"
    case .actor: "on an actor"
    }
  }

  /// Makes what the context needs. Whoever opens it closes it.
  func open(on central: EventCentral) -> OpenContext {
    switch self {
    case .place(let place): OpenContext(executeOn: place.executeOn)
    case .eventThread: OpenContext(thread: EventThread(on: central))
    case .actor: OpenContext(stage: Stage())
    }
  }
}

/// A context in which tests register listeners.
struct OpenContext: Sendable {
  /// What to pass with `register`.
  var executeOn = ExecuteEventOn.requesterThread
  var thread: EventThread?
  var stage: Stage?

  private struct Visit: Eventable {
    let body: @Sendable () -> Void
  }

  /// Runs a body, which registers listeners, where they are to be called, and waits for it.
  @discardableResult
  func register<Result>(_ body: @escaping (isolated (any Actor)?) -> Result) -> Result {
    if let stage { return stage.run(body) }
    guard let thread else { return body(nil) }
    // Used by one after the other: the caller waits.
    nonisolated(unsafe) let body = body
    nonisolated(unsafe) var result: Result?
    let done = Gate()
    let handle = thread.addEventCallback { (visit: Visit) in visit.body() }
    thread.stackEvent(
      Visit {
        result = body(nil)
        done.open()
      }, priority: .highest)
    done.pass()
    handle.removeAndWait()
    return result!
  }

  /// Ends what was made for it. Called at the end of a test, it also keeps that alive until then.
  func close() { thread?.cancel() }
}
