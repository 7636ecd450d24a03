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
  @usableFromInline let observers = ObserverGroup()

  /// Makes an object without observers.
  public init() {}

  /// Adds an observer, as `Observable.addObserver(_:isolation:)`. It is called directly.
  public func addObserver(
    _ observer: AnyObject, isolation: isolated (any Actor)? = #isolation
  ) {
    // Not refused: only groups of keys close.
    observers.add(observer) { nil }
  }

  /// Removes an observer: it is not called again, not even by a notification that is under way.
  public func removeObserver(_ observer: AnyObject) {
    observers.remove(observer)
  }

  /// Calls a closure with every observer that is of the type of the closure's parameter, before it
  /// returns. As ``Observable/withObservers(_:)``.
  @inlinable
  public func withObservers<Observer>(_ code: (_ observer: Observer) -> Void) {
    observers.notifyDirectly(code)
  }
}

/// An ``ObservableClass`` with keyed observers.
open class KeyedObservableClass: ObservableClass, KeyedObservable {
  @usableFromInline let keyedObservers = KeyedObserverGroups()

  /// Adds an observer of one key, as `KeyedObservable.addKeyedObserver(key:_:isolation:)`. The key is
  /// retained as long as it has observers.
  public func addKeyedObserver<Key: Hashable>(
    key: Key, _ observer: AnyObject, isolation: isolated (any Actor)? = #isolation
  ) {
    keyedObservers.add(observer, for: AnyHashable(key)) { nil }
  }

  /// Removes an observer of one key. It stays with its other keys.
  public func removeKeyedObserver<Key: Hashable>(key: Key, _ observer: AnyObject) {
    keyedObservers.remove(observer, for: AnyHashable(key))
  }

  /// Calls a closure with every observer of a key that is of the type of the closure's parameter,
  /// before it returns. As ``KeyedObservable/withKeyedObservers(key:_:)``.
  @inlinable
  public func withKeyedObservers<Key: Hashable, Observer>(
    key: Key, _ code: (_ key: Key, _ observer: Observer) -> Void
  ) {
    keyedObservers.notifyDirectly(AnyHashable(key)) { (observer: Observer) in code(key, observer) }
  }

  /// Calls a closure with the observers of each of several keys, key by key.
  @inlinable
  public func withKeyedObservers<Key: Hashable, Observer>(
    keys: [Key], _ code: (_ key: Key, _ observer: Observer) -> Void
  ) {
    for key in keys {
      withKeyedObservers(key: key, code)
    }
  }
}
