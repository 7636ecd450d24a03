// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A class whose objects can be observed, for one thread or one actor.
///
/// Observers are called directly, before `withObservers` returns. For several threads inherit from
/// ``ObservableThreadSafeClass``.
///
/// **Threads**: one, or one actor, for every member. Observers may add, remove and notify while they are
/// called.
open class ObservableClass: Observable {
  @usableFromInline let registry = ObserverRegistry(on: nil)

  /// Makes an object without observers.
  public init() {}

  /// The registry of the object's observers.
  public final func observerRegistry(isNeeded: Bool) -> ObserverRegistry? { registry }

  /// Calls a closure with every observer that has the type of the closure's parameter.
  ///
  /// **Order**: that in which the observers were added.
  ///
  /// **Complexity**: O(observers of that type), except for the first call after a change.
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
  ///   - key: The key. It is retained as long as it has observers, and then until it is notified with a type that
  ///     they had, or removed, or the number of keys has doubled.
  ///   - observer: The object to call. It is not retained.
  ///
  /// **Complexity**: O(observers of the key).
  public func addKeyedObserver<Key: Hashable>(key: Key, _ observer: AnyObject) {
    registry.keyed.add(observer, for: AnyHashable(key)) { nil }
  }

  /// Removes an observer of one key that need not be `Sendable`. The observer's other keys stay.
  ///
  /// **Complexity**: O(observers of the key).
  public func removeKeyedObserver<Key: Hashable>(key: Key, _ observer: AnyObject) {
    registry.keyed.remove(observer, for: AnyHashable(key))
  }

  /// Calls a closure with every observer of a key that has the type of the closure's parameter.
  ///
  /// **Order**: that in which the observers were added for the key.
  ///
  /// **Complexity**: O(observers of the key and of that type), except for the first call after a change.
  @inlinable
  public func withKeyedObservers<Key: Hashable, Observer>(
    key: Key, _ code: (_ key: Key, _ observer: Observer) -> Void
  ) {
    registry.keyed.notifyDirectly(AnyHashable(key)) { (observer: Observer) in code(key, observer) }
  }

  /// Calls a closure with the observers of several keys, key by key. All else is as for one key.
  @inlinable
  public func withKeyedObservers<Key: Hashable, Observer>(
    keys: [Key], _ code: (_ key: Key, _ observer: Observer) -> Void
  ) {
    for key in keys {
      withKeyedObservers(key: key, code)
    }
  }
}

/// A class whose objects can be observed and notified by any thread.
///
/// Each observer is called in the context in which it was added, or in the place that `executeOn:` names.
///
/// **Threads**: any, for every member.
open class ObservableThreadSafeClass: Observable, @unchecked Sendable {
  // Constant, and itself Sendable. A subclass guards its own state.
  private let registry = ObserverRegistry()

  /// Makes an object without observers.
  public init() {}

  /// The registry of the object's observers.
  public final func observerRegistry(isNeeded: Bool) -> ObserverRegistry? { registry }
}

/// An ``ObservableThreadSafeClass`` with keyed observers.
open class KeyedObservableThreadSafeClass: ObservableThreadSafeClass, KeyedObservable,
  @unchecked Sendable
{}
