// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// An ``Observable`` object whose observers can ask for what concerns one key alone: a model's
/// number, a name in a dictionary.
///
/// ```swift
/// prices.addKeyedObserver(keys: ["ACME", "ROAD"], display)
/// prices.withKeyedObservers(key: "ACME") { (key, observer: PriceObserver) in
///   observer.onPrice(of: key, 17)
/// }
/// ```
///
/// The rules of ``Observable`` hold for each key by itself. Observers with keys and observers
/// without are apart: `withObservers` does not reach the former, `withKeyedObservers` not the
/// latter. Keys are one if their `AnyHashable` forms are equal.
///
/// **Threads**: as for ``Observable``.
public protocol KeyedObservable: Observable {}

extension KeyedObservable {
  /// Adds an observer of one key, behind the others of that key.
  ///
  /// - Parameters:
  ///   - key: What it wants to hear about.
  ///   - observer: The object to call. It is not retained; the key is, as long as it has observers.
  ///   - execution: Where to call it, as for an observer without a key.
  ///   - isolation: Leave it out. On an actor, where it is added is that actor.
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

  /// Adds several observers of one key, in their order.
  ///
  /// - Parameters:
  ///   - key: What they want to hear about.
  ///   - observers: The objects to call.
  ///   - execution: Where to call them; as for one.
  ///   - isolation: Leave it out.
  ///
  /// **Complexity**: O(observers of the key), for each of them.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observers: [AnyObject], executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: [key], observers, executeOn: execution, isolation: isolation)
  }

  /// Adds an observer of several keys.
  ///
  /// - Parameters:
  ///   - keys: What it wants to hear about.
  ///   - observer: The object to call.
  ///   - execution: Where to call it; as for one key.
  ///   - isolation: Leave it out.
  ///
  /// **Complexity**: O(observers of the key), for each key.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observer: AnyObject, executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: keys, [observer], executeOn: execution, isolation: isolation)
  }

  /// Adds several observers of several keys, key by key.
  ///
  /// - Parameters:
  ///   - keys: What they want to hear about.
  ///   - observers: The objects to call.
  ///   - execution: Where to call them; as for one observer and one key.
  ///   - isolation: Leave it out.
  ///
  /// **Complexity**: O(observers of the key), for each of them and each key.
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

  /// Removes an observer of one key: after the return no call of it for that key begins. It stays
  /// with its other keys.
  ///
  /// **Complexity**: O(observers of the key).
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observer: AnyObject) {
    observerRegistry(isNeeded: false)?.keyed.remove(observer, for: AnyHashable(key))
  }

  /// Removes several observers of one key. **Complexity**: as for one, for each of them.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observers: [AnyObject]) {
    removeKeyedObserver(keys: [key], observers)
  }

  /// Removes an observer of several keys. **Complexity**: as for one, for each of them.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(keys: [Key], _ observer: AnyObject) {
    removeKeyedObserver(keys: keys, [observer])
  }

  /// Removes several observers of several keys. **Complexity**: as for one and one key, for each.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(keys: [Key], _ observers: [AnyObject]) {
    for key in keys {
      for observer in observers {
        removeKeyedObserver(key: key, observer)
      }
    }
  }

  /// Calls a closure with every observer of a key that is of the type of the closure's parameter,
  /// each where it wants to be called.
  ///
  /// - Parameters:
  ///   - key: What the notification is about.
  ///   - code: May be called by several threads at once, and after the return.
  ///
  /// **Order**: that in which they were added for the key, among those of one context.
  ///
  /// **Complexity**: O(observers of the key and of that type), after the first time since a change.
  @inlinable
  @preconcurrency
  public func withKeyedObservers<Key: Hashable & Sendable, Observer>(
    key: Key, _ code: @escaping @Sendable (_ key: Key, _ observer: Observer) -> Void
  ) {
    observerRegistry(isNeeded: false)?.keyed.notify(AnyHashable(key)) { (observer: Observer) in
      code(key, observer)
    }
  }

  /// Calls a closure with the observers of each of several keys, key by key.
  ///
  /// **Order**, **Complexity**: as for one key, for each of them.
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
