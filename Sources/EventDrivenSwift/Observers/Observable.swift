// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// An object that notifies others, which it calls by protocols that they conform to.
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
/// Four classes conform to it, ``ObservableClass``, ``ObservableThreadSafeClass`` and their keyed forms,
/// and so does `EventThread`. These rules hold:
/// - Observers are not retained. One that has ended is never called again, and its entry is freed at the next
///   notification of a type that it has, or when others are added.
/// - Observers are called in the order in which they were added. An object that is added twice is called
///   once, at its first position.
/// - A call may add and remove observers, itself among them, and notify again. An observer that is added
///   meanwhile is called from the next notification on; one that is removed is not called any more.
/// - No lock is held while an observer is called.
/// - A call that was handed over to the observer's context is made even if the observed object has ended,
///   unless it had the last reference to the central of its contexts, as an `EventThread` may.
///
/// **Threads**: one, or one actor, for an ``ObservableClass``; any for the others, also inside a call of an
/// observer. Observers may be removed in their `deinit`.
public protocol Observable: AnyObject {
  /// The registry of the object's observers; nil if there is none and `isNeeded` is false. A class of your
  /// own stores an ``ObserverRegistry`` and returns it.
  ///
  /// **Threads**: those of the object's other members.
  func observerRegistry(isNeeded: Bool) -> ObserverRegistry?
}

/// The observers of one object.
///
/// **Threads**: any. **Ownership**: observers are not retained; keys are, as long as they have
/// observers.
public final class ObserverRegistry: Sendable {
  @usableFromInline let all = ObserverGroup()
  @usableFromInline let keyed = KeyedObserverGroups()
  /// The central of the contexts in which observers are called; nil if they are called on the thread that
  /// notifies.
  private let central: EventCentral?

  /// Makes a registry without observers.
  ///
  /// - Parameter central: The central of the contexts in which observers are called. Nil if they are all
  ///   called on the thread that notifies.
  public init(on central: EventCentral? = .shared) { self.central = central }

  /// Where an observer is called that is added now; nil for the thread that notifies.
  func context(
    _ execution: ObserverExecution?, _ actor: (any Actor)?
  ) -> (any ObserverContext)? {
    guard let central else {
      require(
        execution == nil,
        """
        An ObservableClass calls its observers itself, inside withObservers, and was given one with \
        executeOn: leave executeOn: out, or inherit from ObservableThreadSafeClass.
        """)
      return nil
    }
    return (execution ?? .requesterThread).context(in: central.listener.contexts, on: actor)
  }
}

extension Observable {
  /// Adds an observer behind the others, unless it was added before.
  ///
  /// - Parameters:
  ///   - observer: The object to call. It is not retained.
  ///   - execution: Where to call it; by default in the context of this call. An ``ObservableClass`` calls
  ///     its observers on the thread that notifies, and traps if this is not left out when it adds an observer.
  ///   - isolation: Leave it out. On an actor, the observer is called on that actor.
  ///
  /// **Complexity**: O(observers).
  public func addObserver(
    _ observer: AnyObject, executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    guard let registry = observerRegistry(isNeeded: true) else { return }
    // The group cannot refuse it: only the groups of keys are ever closed.
    registry.all.add(observer) { registry.context(execution, isolation) }
  }

  /// Adds several observers, in their order. All else is as for one observer.
  public func addObserver(
    _ observers: [AnyObject], executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    for observer in observers {
      addObserver(observer, executeOn: execution, isolation: isolation)
    }
  }

  /// Removes an observer: after the return no call of it begins, though one may still be running.
  ///
  /// **Complexity**: O(observers).
  public func removeObserver(_ observer: AnyObject) {
    observerRegistry(isNeeded: false)?.all.remove(observer)
  }

  /// Removes several observers. All else is as for one observer.
  public func removeObserver(_ observers: [AnyObject]) {
    for observer in observers {
      removeObserver(observer)
    }
  }

  /// Calls a closure with every observer that has the type of the closure's parameter, each in the place for
  /// which it was added.
  ///
  /// - Parameter code: The closure. Several threads may call it at once, also after the return.
  ///
  /// **Order**: the observers of one context are called in the order in which they were added; each observer
  /// gets the notifications of one thread in their order. One that an observer makes while it is called on the
  /// notifying thread comes before the rest of the outer one.
  ///
  /// **Complexity**: O(observers of that type), except for the first call after a change, and while calls wait in an
  /// earlier context of an observer.
  @inlinable
  @preconcurrency
  public func withObservers<Observer>(_ code: @escaping @Sendable (_ observer: Observer) -> Void) {
    observerRegistry(isNeeded: false)?.all.notify(code)
  }
}
