// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Where an observer is called.
public enum ObserverExecution: Sendable {
  /// In the context in which it was added, in the order of the notifications.
  case requesterThread
  /// By the thread that notifies, before `withObservers` returns. The observer answers for its own
  /// safety if several threads notify.
  case notifyingThread

  /// Where an observer that is added now will be called; nil for the thread that notifies.
  var context: (any ObserverContext)? {
    switch self {
    case .requesterThread: currentObserverContext()
    case .notifyingThread: nil
    }
  }
}

/// The seam between observers and the places where they are called.
protocol ObserverContext: Sendable {
  /// Has a closure called there, after those that were handed over before it. Any thread.
  func run(_ body: @escaping @Sendable () -> Void)
}

/// The caller's own context; nil if nothing can be run there later.
func currentObserverContext() -> (any ObserverContext)? {
  nil
}
