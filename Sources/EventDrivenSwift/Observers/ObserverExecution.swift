// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore

/// Where an observer is called.
public enum ObserverExecution: Sendable {
  /// In the context in which it was added, in the order of the notifications. The table of EventCore's
  /// `ExecuteEventOn.requesterThread` says which that is: it is the same for listeners and observers.
  case requesterThread
  /// By the thread that notifies, before `withObservers` returns. The observer answers for its own
  /// safety if several threads notify.
  case notifyingThread
  /// On a dispatch queue, in the order of the notifications, one at a time.
  case dispatchQueue(DispatchQueue)

  /// Where an observer that is added now will be called; nil for the thread that notifies.
  ///
  /// - Parameter actor: Which actor the caller is on, if it says so.
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
  /// Has a closure called there, after those that were handed over before it. Any thread. False if
  /// the place has ended.
  func run(_ body: @escaping @Sendable () -> Void) -> Bool

  /// False if it has ended by itself: its actor, its thread or its central is gone. Any thread, with
  /// no lock held.
  var isUsable: Bool { get }

  /// The observer does not need it any more. Once, with no lock held.
  func leave()
}

extension ExecutionContext: ObserverContext {}
