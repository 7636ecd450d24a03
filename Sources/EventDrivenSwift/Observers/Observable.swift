// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// An object that tells others, through protocols of theirs, what happens to it.
///
/// ```swift
/// protocol TemperatureObserver: AnyObject {
///   func onTemperature(_ celsius: Float)
/// }
///
/// thermometer.addObserver(display)
/// thermometer.withObservers { (observer: TemperatureObserver) in
///   observer.onTemperature(21.5)
/// }
/// ```
///
/// Four classes bring it, ``ObservableClass``, ``ObservableThreadSafeClass`` and their keyed forms,
/// and so does `EventThread`. They keep these rules:
/// - Observers are held weakly. One that is gone is never called again, and what is kept about it
///   is freed at the next notification, or as others are added.
/// - They are called in the order in which they were added. An object that is added twice is called
///   once, in its first place.
/// - A callback may add and remove observers, itself among them, and notify again. Who is added
///   meanwhile is called from the next notification on; who is removed, no more.
/// - No lock is held while an observer is called.
/// - A call that waits in the observer's own context is made even if the observed object is gone by
///   then, unless that was an `EventThread` which held the last reference to its central.
public protocol Observable: AnyObject {
  /// Adds an observer behind the others. If it is there already, nothing changes.
  ///
  /// - Parameters:
  ///   - observer: The object to call. It is not retained.
  ///   - isolation: The actor that the caller is on. The types that conform here find it out by
  ///     themselves.
  ///
  /// **Threads**: one, or one actor, for an ``ObservableClass``; any for the others, also inside a
  /// callback.
  ///
  /// **Complexity**: O(observers).
  func addObserver(_ observer: AnyObject, isolation: isolated (any Actor)?)

  /// Removes an observer: after the return no call of it begins. One that runs goes on.
  ///
  /// **Threads**, **Complexity**: as ``addObserver(_:isolation:)``; also in the observer's
  /// `deinit`.
  func removeObserver(_ observer: AnyObject)

  /// Calls a closure with every observer that is of the type of the closure's parameter.
  ///
  /// **Threads**: as ``addObserver(_:isolation:)``.
  ///
  /// **Order**: that in which they were added.
  ///
  /// **Complexity**: O(observers of that type), after the first time since a change.
  @preconcurrency
  func withObservers<Observer>(_ code: @escaping @Sendable (_ observer: Observer) -> Void)
}

extension Observable {
  /// Adds an observer behind the others. If it is there already, nothing changes.
  ///
  /// **Threads**, **Complexity**: as ``addObserver(_:isolation:)``.
  public func addObserver(_ observer: AnyObject) {
    addObserver(observer, isolation: nil)
  }

  /// Adds several observers, in their order: each as ``addObserver(_:isolation:)``. Leave `isolation` out:
  /// on an actor, they are called there.
  public func addObserver(
    _ observers: [AnyObject], isolation: isolated (any Actor)? = #isolation
  ) {
    for observer in observers {
      addObserver(observer, isolation: isolation)
    }
  }

  /// Removes several observers: each as ``removeObserver(_:)-(AnyObject)``.
  public func removeObserver(_ observers: [AnyObject]) {
    for observer in observers {
      removeObserver(observer)
    }
  }
}
