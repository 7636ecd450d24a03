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
  /// The contexts that several listeners can share.
  static let shared = ListenerPlace.shared.map(Self.place) + [.eventThread, .actor]

  var testDescription: String {
    switch self {
    case .place(let place): place.testDescription
    case .eventThread: "inside a handler of an event thread"
    case .actor: "on an actor"
    }
  }

  /// Runs a body with a central and with an open context of this kind, off the cooperative pool.
  func run(
    on core: EventCentral.Core, _ body: @escaping @Sendable (EventCentral, OpenContext) -> Void
  ) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context =
        switch self {
        case .place(let place): OpenContext(executeOn: place.executeOn)
        case .eventThread: OpenContext(thread: EventThread(on: central))
        case .actor: OpenContext(stage: Stage())
        }
      body(central, context)
      withExtendedLifetime(context) { context.thread?.cancel() }
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

  /// Runs a body that registers listeners in the context in which they are to be called, and waits.
  @discardableResult
  func register<Result>(_ body: @escaping (isolated (any Actor)?) -> Result) -> Result {
    if let stage { return stage.run(body) }
    guard let thread else { return body(nil) }
    // The event thread and the caller use both in turn, since the caller waits.
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
}
