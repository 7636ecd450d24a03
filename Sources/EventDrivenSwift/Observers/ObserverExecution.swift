// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore

/// The place in which an observer is called.
public enum ObserverExecution: Sendable {
  /// In the context in which it was added, in the order of the notifications. The table of EventCore's
  /// `ExecuteEventOn.requesterThread` says which context that is, for listeners and observers alike.
  case requesterThread
  /// On the thread that notifies, before `withObservers` returns. The observer has to be thread-safe if
  /// several threads notify.
  case notifyingThread
  /// On a dispatch queue, in the order of the notifications, one at a time.
  case dispatchQueue(DispatchQueue)

  /// Where an observer is called that is added now; nil for the thread that notifies.
  ///
  /// - Parameter actor: The caller's actor, if it is known.
  func context(in contexts: ExecutionContexts, on actor: (any Actor)?) -> (any ObserverContext)? {
    switch self {
    case .requesterThread: actor.map { contexts.actor($0) } ?? contexts.current()
    case .notifyingThread: nil
    case .dispatchQueue(let queue): contexts.queue(queue)
    }
  }
}

/// The seam between observers and the places where they are called.
protocol ObserverContext: Sendable {
  /// Runs a closure there, after those that were handed over before. False if the place has ended. Any
  /// thread.
  func run(_ body: @escaping @Sendable () -> Void) -> Bool

  /// False if its actor, its thread or its central has ended. Any thread, with no lock held.
  var isUsable: Bool { get }

  /// Whether it takes nothing more, and still runs what was handed over. Any thread.
  var isDraining: Bool { get }

  /// Tells that the observer does not need the place any more. Once, with no lock held.
  func leave()
}

extension ExecutionContext: ObserverContext {}
