// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A class whose objects can be observed and notified by any thread.
///
/// Each observer is called in the context in which it was added, in the place that `executeOn:` names,
/// or by the thread that notifies if that is ``ObserverExecution/notifyingThread``.
///
/// **Threads**: any, for every member.
open class ObservableThreadSafeClass: Observable, @unchecked Sendable {
  // Constant, and Sendable by itself. A subclass guards its own state.
  private let registry = ObserverRegistry()

  /// Makes an object without observers.
  public init() {}

  /// What the object knows of its observers.
  public final func observerRegistry(isNeeded: Bool) -> ObserverRegistry? { registry }
}

/// An ``ObservableThreadSafeClass`` with keyed observers.
open class KeyedObservableThreadSafeClass: ObservableThreadSafeClass, KeyedObservable,
  @unchecked Sendable
{}
