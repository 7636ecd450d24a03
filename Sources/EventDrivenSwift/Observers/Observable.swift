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
///
/// **Threads**: one, or one actor, for an ``ObservableClass``; any for the others, also inside a
/// callback. Observers may be removed in their `deinit`.
public protocol Observable: AnyObject {
  /// What the object knows of its observers; nil if it never had any and none is to be made. A class
  /// of your own keeps an ``ObserverRegistry`` and returns it.
  ///
  /// **Threads**: as all members of the object.
  func observerRegistry(isNeeded: Bool) -> ObserverRegistry?
}

/// The observers of one object.
///
/// **Threads**: any. **Ownership**: observers are not retained; keys are, as long as they have
/// observers.
public final class ObserverRegistry: Sendable {
  @usableFromInline let all = ObserverGroup()
  @usableFromInline let keyed = KeyedObserverGroups()
  /// Whose contexts the observers are called in; nil if they are called by whoever notifies.
  private let central: EventCentral?

  /// Makes a registry without observers.
  ///
  /// - Parameter central: Where observers are called that name a place or are to be called where they
  ///   were added. Nil if the thread that notifies calls them all.
  public init(on central: EventCentral? = .shared) { self.central = central }

  /// Where an observer that is added now will be called; nil for the thread that notifies.
  func context(
    _ execution: ObserverExecution?, _ actor: (any Actor)?
  ) -> (any ObserverContext)? {
    guard let central else {
      require(
        execution == nil,
        """
        An ObservableClass calls its observers itself, inside withObservers, and was given one with executeOn: \
        leave executeOn: out, or inherit from ObservableThreadSafeClass.
        """)
      return nil
    }
    return (execution ?? .requesterThread).context(in: central.listener.contexts, on: actor)
  }
}

extension Observable {
  /// Adds an observer behind the others. If it is there already, nothing changes.
  ///
  /// - Parameters:
  ///   - observer: The object to call. It is not retained.
  ///   - execution: Where to call it. Left out, where it is added; by the thread that notifies if this is
  ///     an ``ObservableClass``, which traps if a place is named.
  ///   - isolation: Leave it out. On an actor, where it is added is that actor.
  ///
  /// **Complexity**: O(observers).
  public func addObserver(
    _ observer: AnyObject, executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    guard let registry = observerRegistry(isNeeded: true) else { return }
    // Not refused: only groups of keys close.
    registry.all.add(observer) { registry.context(execution, isolation) }
  }

  /// Adds several observers, in their order.
  ///
  /// - Parameters:
  ///   - observers: The objects to call. They are not retained.
  ///   - execution: Where to call them; as for one.
  ///   - isolation: Leave it out.
  ///
  /// **Complexity**: O(observers), for each of them.
  public func addObserver(
    _ observers: [AnyObject], executeOn execution: ObserverExecution? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) {
    for observer in observers {
      addObserver(observer, executeOn: execution, isolation: isolation)
    }
  }

  /// Removes an observer: after the return no call of it begins. One that runs goes on.
  ///
  /// **Complexity**: O(observers).
  public func removeObserver(_ observer: AnyObject) {
    observerRegistry(isNeeded: false)?.all.remove(observer)
  }

  /// Removes several observers.
  ///
  /// **Complexity**: O(observers), for each of them.
  public func removeObserver(_ observers: [AnyObject]) {
    for observer in observers {
      removeObserver(observer)
    }
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
  public func withObservers<Observer>(_ code: @escaping @Sendable (_ observer: Observer) -> Void) {
    observerRegistry(isNeeded: false)?.all.notify(code)
  }
}
