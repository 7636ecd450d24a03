// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Makes a property that holds a closure a handler of its object.
///
/// ```swift
/// @MainActor
/// final class Display: EventListening {
///   var celsius: Float = 0
///
///   @EventMethod<Display, TemperatureEvent>(interestedIn: .latestOnly)
///   private var onTemperature = { (self, event, priority, dispatchTime) in
///     self.celsius = event.temperatureInCelsius
///   }
///
///   init() { registerListeners() }
/// }
/// ```
///
/// The object is the closure's first argument, so that nothing retains it: the handler ends
/// with it (D9). In an ``EventThread`` subclass the initialiser registers the property, and
/// the closure runs on the thread. Elsewhere ``EventListening/registerListeners(isolation:)`` registers
/// it, and the closure is called where that is called. With `executeOn:` it is called in the place
/// that it names; the closure and its class have to be `Sendable` then.
///
/// The projected value (`$onTemperature`) is the handle, once it is registered.
@propertyWrapper
public struct EventMethod<Owner: AnyObject, Event: Eventable> {
  /// What is called: with the object, the event, its priority and the time of its dispatch.
  public let wrappedValue:
    (_ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Void
  /// Nil: where it is registered, or the thread whose property it is.
  private let executeOn: ExecuteEventOn?
  private let interest: HandlerInterest<Event>
  /// What judges an event: with the object, before the callback would be called.
  private let filter: Filter?
  private let registration = EventMethodRegistration()

  private typealias Callback = (Owner, Event, EventPriority, DispatchTime) -> Void
  private typealias Filter = (Owner, Event, EventPriority, DispatchTime) -> Bool

  /// Called by the compiler for the property, whose closure is called where it is registered: for an
  /// ``EventThread`` on that thread, for an actor on that actor.
  ///
  /// - Parameters:
  ///   - wrappedValue: The closure.
  ///   - interest: Which of these events it wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event that it wants.
  public init(
    wrappedValue: @escaping (
      _ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
    ) -> Void,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      (
        _ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) {
    self.init(wrappedValue, nil, interest, maximumAge, customFilter)
  }

  /// Called by the compiler for the property, whose closure is called in a place that it names.
  ///
  /// With `.requesterThread` that is the context that registers it, which for an ``EventThread`` is that
  /// thread. All else is as for the form without `executeOn`.
  public init(
    wrappedValue: @escaping @Sendable (
      _ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
    ) -> Void,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (
        _ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) where Owner: Sendable {
    self.init(wrappedValue, executeOn, interest, maximumAge, customFilter)
  }

  private init(
    _ callback: @escaping Callback, _ executeOn: ExecuteEventOn?,
    _ interest: EventListenerInterest, _ maximumAge: UInt64, _ filter: Filter?
  ) {
    wrappedValue = callback
    self.executeOn = executeOn
    self.interest = HandlerInterest(interest, maximumAge: maximumAge, isJudged: filter != nil)
    self.filter = filter
  }

  /// The handle of the registered handler; nil before it is registered.
  public var projectedValue: (any EventListenerHandling)? { registration.handle }
}

/// The part of an `EventMethod` that a reflected copy shares with the property.
private final class EventMethodRegistration: Sendable {
  private let state = Guarded<(any EventListenerHandling)?>(nil)

  var handle: (any EventListenerHandling)? { state.withLock { $0 } }

  /// Registers what is not registered yet. Two at once make a mistake of the caller's that costs a
  /// second registration, which is taken back.
  func register(_ make: () -> any EventListenerHandling) {
    let before = handle
    // Not under the lock: to look may end another owner's listener, which is user code.
    guard before?.isActive != true else { return }
    let made = make()
    let isFirst = state.withLock { handle in
      guard handle === before else { return false }
      handle = made
      return true
    }
    if !isFirst { made.remove() }
  }
}

/// An `EventMethod` whose types are not known.
package protocol AnyEventMethod {
  /// The handle of the registered handler; nil before it is registered.
  var projectedValue: (any EventListenerHandling)? { get }
  /// Registers it as a listener of `owner`. `actor`: which the caller is on, if it says so.
  func register(owner: AnyObject, on listener: EventListener, _ actor: (any Actor)?)
  /// Registers it as a callback of a thread, which is its owner.
  func register(thread: EventThread)
}

extension EventMethod: AnyEventMethod {
  package func register(owner: AnyObject, on listener: EventListener, _ actor: (any Actor)?) {
    requireOwner(owner)
    registration.register {
      // An actor's own handlers are called on it, also if its initialiser registers them.
      listener.addListener(
        owner, executeOn, owner as? any Actor ?? actor, isOnce: false, interest,
        HandlerCallback(owned: wrappedValue, filter: filter))
    }
  }

  package func register(thread: EventThread) {
    switch executeOn {
    case nil, .requesterThread: break
    default:
      register(owner: thread, on: thread.central.listener, nil)
      return
    }
    requireOwner(thread)
    registration.register {
      thread.add(HandlerCallback(owned: wrappedValue, filter: filter), interest)
    }
  }

  private func requireOwner(_ owner: AnyObject) {
    require(
      owner is Owner,
      """
      An @EventMethod<\(Owner.self), \(Event.self)> is a handler of a \(Owner.self), and was found in a \
      \(type(of: owner)): name the class that declares the property, or a base class of it.
      """)
  }
}

/// The event methods among an object's properties, those of its base classes first.
package func eventMethods(of object: AnyObject) -> [any AnyEventMethod] {
  var found: [[any AnyEventMethod]] = []
  var mirror: Mirror? = Mirror(reflecting: object)
  while let level = mirror {
    found.append(level.children.compactMap { $0.value as? any AnyEventMethod })
    mirror = level.superclassMirror
  }
  return found.reversed().flatMap { $0 }
}

/// An object that listens to events by ``EventMethod`` properties.
public protocol EventListening: AnyObject {
  // Disfavoured for the form with a parameter, which knows the caller's actor, and calls this.

  /// Registers the object's listeners: by default all its ``EventMethod`` properties, on
  /// ``EventCentral/shared``. Call it where the listeners should be called, at the end of the
  /// initialiser for instance: the properties of a class on the MainActor, on the MainActor. The
  /// compiler does not check that.
  ///
  /// A property that is registered already is left alone.
  @_disfavoredOverload
  func registerListeners()
}

extension EventListening {
  /// Registers all ``EventMethod`` properties on the shared central, as
  /// ``registerListeners(on:isolation:)``.
  @_disfavoredOverload
  public func registerListeners() {
    registerListeners(on: EventCentral.shared, isolation: nil)
  }

  /// Registers the object's listeners, by its own ``registerListeners()`` if it has one.
  ///
  /// - Parameter isolation: Leave it out. On an actor, that actor is where everything is called that
  ///   is registered meanwhile without `executeOn:` or with `.requesterThread`.
  ///
  /// **Threads**, **Complexity**: as ``registerListeners(on:isolation:)``.
  public func registerListeners(isolation: isolated (any Actor)? = #isolation) {
    // Named with its type, it is the requirement, which a class may have implemented.
    let register: () -> Void = registerListeners
    RegisteringActor.with(isolation, register)
  }

  /// Registers all ``EventMethod`` properties on a central, or with a listener.
  ///
  /// - Parameters:
  ///   - listenable: The central, or an event thread, a pool or a listener of your own.
  ///   - isolation: Leave it out. On an actor, the properties are called on that actor.
  ///
  /// **Threads**: the main thread, an actor, or a handler, to which events can come back; any, if all
  /// properties say `executeOn:`, as ``ExecuteEventOn/requesterThread`` tells. Those of an actor are
  /// called on that actor.
  ///
  /// **Complexity**: O(properties), by reflection: some microseconds.
  public func registerListeners(
    on listenable: any EventListenable, isolation: isolated (any Actor)? = #isolation
  ) {
    for method in eventMethods(of: self) {
      method.register(owner: self, on: listenable.listener, isolation)
    }
  }
}
