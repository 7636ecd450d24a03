// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A class whose objects can be observed and notified by any thread.
///
/// Each observer is called in the context in which it was added, or by the thread that notifies if
/// it was added with ``ObserverExecution/notifyingThread``.
///
/// **Threads**: any, for every member.
open class ObservableThreadSafeClass: Observable, @unchecked Sendable {
  // Constant, and Sendable by itself. A subclass guards its own state.
  @usableFromInline let observers = ObserverGroup()

  /// Makes an object without observers.
  public init() {}

  /// Adds an observer behind the others, to be called in the caller's context. As
  /// `addObserver(_:executeOn:isolation:)` with `.requesterThread`.
  public func addObserver(
    _ observer: AnyObject, isolation: isolated (any Actor)? = #isolation
  ) {
    addObserver(observer, executeOn: .requesterThread, isolation: isolation)
  }

  /// Adds an observer behind the others. If it is there already, nothing changes.
  ///
  /// - Parameters:
  ///   - observer: Whom to call.
  ///   - execution: Where to call it.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  ///
  /// **Complexity**: O(observers).
  ///
  /// **Ownership**: the observer is not retained.
  public func addObserver(
    _ observer: AnyObject, executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    // Not refused: only groups of keys close.
    observers.add(observer) {
      execution.context(in: EventCentral.shared.listener.contexts, on: isolation)
    }
  }

  /// Adds several observers, in their order.
  public func addObserver(
    _ observers: [AnyObject], executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    for observer in observers {
      addObserver(observer, executeOn: execution, isolation: isolation)
    }
  }

  /// Removes an observer: after the return no call of it begins. One that runs goes on.
  public func removeObserver(_ observer: AnyObject) {
    observers.remove(observer)
  }

  /// Calls a closure with every observer that is of the type of the closure's parameter, each where
  /// it wants to be called.
  ///
  /// - Parameter code: May be called by several threads at once, and after the return.
  ///
  /// **Order**: that in which they were added, among those of one context; each observer gets the
  /// notifications of one thread in their order.
  ///
  /// **Complexity**: O(observers of that type), after the first time since a change.
  @inlinable
  @preconcurrency
  public func withObservers<Observer>(
    _ code: @escaping @Sendable (_ observer: Observer) -> Void
  ) {
    observers.notify(code)
  }
}

/// An ``ObservableThreadSafeClass`` with keyed observers.
open class KeyedObservableThreadSafeClass: ObservableThreadSafeClass, KeyedObservable,
  @unchecked Sendable
{
  // Constant, and Sendable by itself. A subclass guards its own state.
  @usableFromInline let keyedObservers = KeyedObserverGroups()

  /// Adds an observer of one key, behind the others of that key, to be called in the caller's
  /// context. All else is as for `ObservableThreadSafeClass.addObserver(_:isolation:)`.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observer: AnyObject, isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(key: key, observer, executeOn: .requesterThread, isolation: isolation)
  }

  /// Adds an observer of one key, behind the others of that key. All else is as for
  /// `ObservableThreadSafeClass.addObserver(_:executeOn:isolation:)`; the key is retained as long as
  /// it has observers.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observer: AnyObject, executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    keyedObservers.add(observer, for: AnyHashable(key)) {
      execution.context(in: EventCentral.shared.listener.contexts, on: isolation)
    }
  }

  /// Adds several observers of one key, in their order.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observers: [AnyObject], executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: [key], observers, executeOn: execution, isolation: isolation)
  }

  /// Adds an observer of several keys.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observer: AnyObject, executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: keys, [observer], executeOn: execution, isolation: isolation)
  }

  /// Adds several observers of several keys.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observers: [AnyObject], executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    for key in keys {
      for observer in observers {
        addKeyedObserver(key: key, observer, executeOn: execution, isolation: isolation)
      }
    }
  }

  /// Removes an observer of one key: after the return no call of it for that key begins. It stays
  /// with its other keys.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observer: AnyObject) {
    keyedObservers.remove(observer, for: AnyHashable(key))
  }

  /// Calls a closure with every observer of a key that is of the type of the closure's parameter,
  /// each where it wants to be called. All else is as for
  /// ``ObservableThreadSafeClass/withObservers(_:)``.
  @inlinable
  @preconcurrency
  public func withKeyedObservers<Key: Hashable & Sendable, Observer>(
    key: Key, _ code: @escaping @Sendable (_ key: Key, _ observer: Observer) -> Void
  ) {
    keyedObservers.notify(AnyHashable(key)) { (observer: Observer) in code(key, observer) }
  }
}
