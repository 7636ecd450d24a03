// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A class whose objects can be observed, for use by one thread or one actor.
///
/// Observers are called directly, before `withObservers` returns. Where several threads come in,
/// inherit from ``ObservableThreadSafeClass``.
///
/// **Threads**: one, or one actor, for every member; observers may add, remove and notify inside
/// their calls.
open class ObservableClass: Observable {
  @usableFromInline let registry = ObserverRegistry(on: nil)

  /// Makes an object without observers.
  public init() {}

  /// What the object knows of its observers.
  public final func observerRegistry(isNeeded: Bool) -> ObserverRegistry? { registry }

  /// Calls a closure with every observer that is of the type of the closure's parameter.
  ///
  /// **Order**: that in which they were added.
  ///
  /// **Complexity**: O(observers of that type), after the first time since a change.
  @inlinable
  public func withObservers<Observer>(_ code: (_ observer: Observer) -> Void) {
    registry.all.notifyDirectly(code)
  }
}

/// An ``ObservableClass`` with keyed observers.
open class KeyedObservableClass: ObservableClass, KeyedObservable {
  /// Adds an observer of one key that need not be `Sendable`, behind the others of that key.
  ///
  /// - Parameters:
  ///   - key: What it wants to hear about.
  ///   - observer: The object to call. It is not retained; the key is, as long as it has observers.
  ///
  /// **Complexity**: O(observers of the key).
  public func addKeyedObserver<Key: Hashable>(key: Key, _ observer: AnyObject) {
    registry.keyed.add(observer, for: AnyHashable(key)) { nil }
  }

  /// Removes an observer of one key that need not be `Sendable`. It stays with its other keys.
  ///
  /// **Complexity**: O(observers of the key).
  public func removeKeyedObserver<Key: Hashable>(key: Key, _ observer: AnyObject) {
    registry.keyed.remove(observer, for: AnyHashable(key))
  }

  /// Calls a closure with every observer of a key that is of the type of the closure's parameter.
  ///
  /// **Order**: that in which they were added for the key.
  ///
  /// **Complexity**: O(observers of that type), after the first time since a change, for each key.
  @inlinable
  public func withKeyedObservers<Key: Hashable, Observer>(
    key: Key, _ code: (_ key: Key, _ observer: Observer) -> Void
  ) {
    registry.keyed.notifyDirectly(AnyHashable(key)) { (observer: Observer) in code(key, observer) }
  }

  /// Calls a closure with the observers of each of several keys, key by key.
  ///
  /// **Complexity**: O(observers of that type), after the first time since a change, for each key.
  @inlinable
  public func withKeyedObservers<Key: Hashable, Observer>(
    keys: [Key], _ code: (_ key: Key, _ observer: Observer) -> Void
  ) {
    for key in keys {
      withKeyedObservers(key: key, code)
    }
  }
}
