// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Synchronization

/// The climb of an event that came from another machine, through the coordinators of this one.
final class Ascent: Sendable {
  /// Passes the event to the next machine; what that answers goes to the reply.
  typealias Onward = @Sendable (_ reply: EmissionReply?) -> Void
  @TaskLocal static var current: Ascent?
  /// The header with the names that an event has passed.
  static let key = "EventCore-Passed"

  private struct State {
    var passed: [String]
    var held: (top: ObjectIdentifier, type: ObjectIdentifier, send: Onward)?
    var isOver = false
  }
  private let state: Locked<State>

  /// The parents that the event has reached, this machine's as the last. What coordinators emit meanwhile has them too.
  /// None once the climb is over: what a task emits that an interceptor has started is a new event.
  var passed: [String] { state.withLock { $0.passed } }

  init(_ passed: [String]) { state = Locked(State(passed: passed)) }

  /// Emits the event, and answers: here, or after what is further up.
  func climb<E: CoordinateEvents>(_ event: E, from coordinator: EventCoordinator, _ reply: EmissionReply) {
    var top = coordinator
    while let parent = top.parentCoordinator { top = parent }
    let result = Self.$current.withValue(self) { coordinator.emitEvent(event, includingEmitter: true) }
    let held = state.withLock { state in
      (state.isOver, state.passed) = (true, [])
      defer { state.held = nil }
      return state.held
    }
    // What the top has passed on last is the event itself, unless somebody has stopped it, or the top passes on no such
    // events: then that is another one, which an interceptor has emitted.
    if result == .unhandled, let held, held.top == ObjectIdentifier(top), held.type == ObjectIdentifier(E.self) {
      return held.send(reply)
    }
    held?.send(nil)
    reply.give(.success(result))
  }

  /// Holds what is to be passed on until it is known whose answer it brings; sends what it has held before.
  ///
  /// - Returns: False if the climb is over, as in a task that an interceptor has started.
  func hold<E>(_ type: E.Type, at top: ObjectIdentifier, _ send: @escaping Onward) -> Bool {
    let (isHeld, before) = state.withLock { state in
      guard !state.isOver else { return (false, Onward?.none) }
      defer { state.held = (top, ObjectIdentifier(E.self), send) }
      return (true, state.held?.send)
    }
    before?(nil)
    return isHeld
  }
}

/// The way back to a child: one answer, or in the end that nobody is there.
final class EmissionReply: Sendable {
  private let link: Link
  /// Nil if nobody waits.
  private let subject: String?
  // Relaxed: who reads it is the last that has the reply.
  private let isGiven = Atomic<Bool>(false)

  init(_ link: Link, _ subject: String?) {
    (self.link, self.subject) = (link, subject)
  }

  deinit {
    if !isGiven.load(ordering: .relaxed), let subject { link.sendNobody(subject) }
  }

  func give(_ answer: Result<EventEmission, any Error>) {
    isGiven.store(true, ordering: .relaxed)
    guard let subject else { return }
    switch answer {
    case .success(.handled): link.send(subject, Data("handled".utf8))
    case .success(.unhandled): link.send(subject, Data("unhandled".utf8))
    case .failure(let error): link.send(subject, failure: "\(error)")
    }
  }
}

extension EventEmission {
  /// - Parameter reply: That of ``EmissionReply``, or anybody's.
  init(reply: Data) throws {
    switch String(decoding: reply.prefix(16), as: UTF8.self) {
    case "handled": self = .handled
    case "unhandled": self = .unhandled
    default:
      throw NATSBridgeError(.other, "A parent coordinator answers handled or unhandled, and this was another word.")
    }
  }
}
