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
public protocol KeyedObservable: Observable {
  /// Adds an observer of one key, behind the others of that key.
  ///
  /// - Parameters:
  ///   - key: What the observer wants to hear about.
  ///   - observer: The object to call. It is not retained.
  ///   - isolation: The actor that the caller is on. The types that conform here find it out by
  ///     themselves.
  ///
  /// **Threads**: as for ``Observable/addObserver(_:isolation:)``.
  ///
  /// **Complexity**: O(observers of the key).
  @preconcurrency
  func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observer: AnyObject, isolation: isolated (any Actor)?)

  /// Removes an observer of one key: after the return no call of it for that key begins.
  ///
  /// **Threads**: as for ``Observable/addObserver(_:isolation:)``; also in the observer's `deinit`.
  ///
  /// **Complexity**: O(observers of the key).
  @preconcurrency
  func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observer: AnyObject)

  /// Calls a closure with every observer of a key that is of the type of the closure's parameter.
  ///
  /// **Threads**: as for ``Observable/addObserver(_:isolation:)``.
  ///
  /// **Order**: that in which they were added.
  ///
  /// **Complexity**: O(observers of the key and of that type), after the first time since a change.
  @preconcurrency
  func withKeyedObservers<Key: Hashable & Sendable, Observer>(
    key: Key, _ code: @escaping @Sendable (_ key: Key, _ observer: Observer) -> Void)
}

// Threads and complexity of all of these: those of the requirement for one observer and one key, for
// each of them.
extension KeyedObservable {
  /// Adds an observer of one key, behind the others of that key.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observer: AnyObject) {
    addKeyedObserver(key: key, observer, isolation: nil)
  }

  /// Adds several observers of one key, in their order.
  ///
  /// In this and the next two, leave `isolation` out: on an actor, observers are called there.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observers: [AnyObject], isolation: isolated (any Actor)? = #isolation
  ) {
    for observer in observers {
      addKeyedObserver(key: key, observer, isolation: isolation)
    }
  }

  /// Adds an observer of several keys.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observer: AnyObject, isolation: isolated (any Actor)? = #isolation
  ) {
    for key in keys {
      addKeyedObserver(key: key, observer, isolation: isolation)
    }
  }

  /// Adds several observers of several keys.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observers: [AnyObject], isolation: isolated (any Actor)? = #isolation
  ) {
    for key in keys {
      addKeyedObserver(key: key, observers, isolation: isolation)
    }
  }

  /// Removes several observers of one key.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observers: [AnyObject]) {
    for observer in observers {
      removeKeyedObserver(key: key, observer)
    }
  }

  /// Removes an observer of several keys.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(keys: [Key], _ observer: AnyObject) {
    for key in keys {
      removeKeyedObserver(key: key, observer)
    }
  }

  /// Removes several observers of several keys.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(keys: [Key], _ observers: [AnyObject]) {
    for key in keys {
      removeKeyedObserver(key: key, observers)
    }
  }

  /// Calls a closure with the observers of each of several keys, key by key.
  ///
  /// **Threads**, **Order**, **Complexity**: as ``withKeyedObservers(key:_:)``, for each key.
  @preconcurrency
  public func withKeyedObservers<Key: Hashable & Sendable, Observer>(
    keys: [Key], _ code: @escaping @Sendable (_ key: Key, _ observer: Observer) -> Void
  ) {
    for key in keys {
      withKeyedObservers(key: key, code)
    }
  }
}
