// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// An ``Observable`` object whose observers can ask for the notifications about one key only, such as the
/// number of a model or a name in a dictionary.
///
/// ```swift
/// prices.addKeyedObserver(keys: ["ACME", "ROAD"], display)
/// prices.withKeyedObservers(key: "ACME") { (key, observer: PriceObserver) in
///   observer.onPrice(of: key, 17)
/// }
/// ```
///
/// The rules of ``Observable`` hold for each key. `withObservers` does not call observers with a key, and
/// `withKeyedObservers` does not call observers without one. Two keys are the same if their `AnyHashable`
/// forms are equal.
///
/// **Threads**: as for ``Observable``.
public protocol KeyedObservable: Observable {}

/// Event threads can be observed. An observer is called by `withObservers` of this thread, not for the events
/// that the thread handles.
///
/// **Threads**: any, for every member. A thread without observers has no cost.
extension EventThread: KeyedObservable {
  /// The registry of the thread's observers, which are called in the contexts of its central.
  public func observerRegistry(isNeeded: Bool) -> ObserverRegistry? {
    let attached = isNeeded ? attachment.value { ObserverRegistry(on: central) } : attachment.value
    // Nothing else is attached.
    return attached.map { unsafeDowncast($0, to: ObserverRegistry.self) }
  }
}

extension KeyedObservable {
  /// Adds an observer of one key, behind the others of that key.
  ///
  /// - Parameters:
  ///   - key: The key. It is retained as long as it has observers, and then until it is notified with a type that
  ///     they had, or removed, or the number of keys has doubled.
  ///   - observer: The object to call. It is not retained.
  ///   - execution: Where to call it, as for an observer without a key.
  ///   - isolation: Leave it out. On an actor, the observer is called on that actor.
  ///
  /// **Complexity**: O(observers of the key).
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observer: AnyObject, executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    guard let registry = observerRegistry(isNeeded: true) else { return }
    registry.keyed.add(observer, for: AnyHashable(key)) { registry.context(execution, isolation) }
  }

  /// Adds several observers of one key, in their order. All else is as for one observer.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observers: [AnyObject], executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: [key], observers, executeOn: execution, isolation: isolation)
  }

  /// Adds an observer of several keys. All else is as for one key.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observer: AnyObject, executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: keys, [observer], executeOn: execution, isolation: isolation)
  }

  /// Adds several observers of several keys, key by key. All else is as for one observer and one key.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observers: [AnyObject], executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    for key in keys {
      for observer in observers {
        addKeyedObserver(key: key, observer, executeOn: execution, isolation: isolation)
      }
    }
  }

  /// Removes an observer of one key: after the return no call of it for that key begins. The observer's other
  /// keys stay.
  ///
  /// **Complexity**: O(observers of the key).
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observer: AnyObject) {
    observerRegistry(isNeeded: false)?.keyed.remove(observer, for: AnyHashable(key))
  }

  /// Removes several observers of one key. All else is as for one observer.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observers: [AnyObject]) {
    removeKeyedObserver(keys: [key], observers)
  }

  /// Removes an observer of several keys. All else is as for one key.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(keys: [Key], _ observer: AnyObject) {
    removeKeyedObserver(keys: keys, [observer])
  }

  /// Removes several observers of several keys. All else is as for one observer and one key.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(keys: [Key], _ observers: [AnyObject]) {
    for key in keys {
      for observer in observers {
        removeKeyedObserver(key: key, observer)
      }
    }
  }

  /// Calls a closure with every observer of a key that has the type of the closure's parameter, each in the
  /// place for which it was added.
  ///
  /// - Parameters:
  ///   - key: The key of the notification.
  ///   - code: The closure. Several threads may call it at once, also after the return.
  ///
  /// **Order**: that in which the observers of one context were added for the key.
  ///
  /// **Complexity**: O(observers of the key and of that type), except for the first call after a change.
  @inlinable
  @preconcurrency
  public func withKeyedObservers<Key: Hashable & Sendable, Observer>(
    key: Key, _ code: @escaping @Sendable (_ key: Key, _ observer: Observer) -> Void
  ) {
    observerRegistry(isNeeded: false)?.keyed.notify(AnyHashable(key)) { (observer: Observer) in
      code(key, observer)
    }
  }

  /// Calls a closure with the observers of several keys, key by key. All else is as for one key.
  @inlinable
  @preconcurrency
  public func withKeyedObservers<Key: Hashable & Sendable, Observer>(
    keys: [Key], _ code: @escaping @Sendable (_ key: Key, _ observer: Observer) -> Void
  ) {
    for key in keys {
      withKeyedObservers(key: key, code)
    }
  }
}
