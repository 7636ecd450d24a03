// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Makes a property that stores a closure a handler of its object.
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
/// The closure gets the object as its first argument, so that it need not capture and retain it: the handler
/// ends with the object (D9). In an ``EventThread`` subclass the initialiser registers the property, and the
/// closure runs on the thread. In other classes ``EventListening/registerListeners(isolation:)`` registers
/// it, and the closure is called in the context of that call. With `executeOn:` the closure is called in the
/// named place; then the closure and the class have to be `Sendable`. Such a handler of an ``EventThread`` subclass is a
/// listener of the central's: `cancel()` and `drain(until:)` of the thread do not end it, and in a pool it traps.
///
/// The projected value (`$onTemperature`) is the handle, once the property is registered.
@propertyWrapper
public struct EventMethod<Owner: AnyObject, Event: Eventable> {
  /// The closure: it gets the object, the event, its priority and the time of its dispatch.
  public let wrappedValue:
    (_ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Void
  /// Nil for the context of the registration, or the event thread that has the property.
  private let executeOn: ExecuteEventOn?
  private let interest: HandlerInterest<Event>
  private let filter: Filter?
  private let registration = EventMethodRegistration()

  private typealias Callback = (Owner, Event, EventPriority, DispatchTime) -> Void
  private typealias Filter = (Owner, Event, EventPriority, DispatchTime) -> Bool

  /// Makes a handler that is called where the property is registered: that of an ``EventThread`` on that
  /// thread, that of an actor on that actor. The compiler calls this for the property.
  ///
  /// - Parameters:
  ///   - wrappedValue: The closure.
  ///   - interest: Which events the handler wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event that the handler wants.
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

  /// Makes a handler that is called in a place that the property names. `.requesterThread` is the place of
  /// the form without `executeOn`; all else is as for that form.
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

  /// The handle of the handler; nil before the property is registered.
  public var projectedValue: (any EventListenerHandling)? { registration.handle }
}

/// The part of an `EventMethod` that the property shares with its copies (`eventMethods(of:)`).
private final class EventMethodRegistration: Sendable {
  private let state = Guarded<(any EventListenerHandling)?>(nil)

  var handle: (any EventListenerHandling)? { state.withLock { $0 } }

  /// Registers the handler if it is not registered. If two threads do so at once, one of the two
  /// registrations is taken back.
  func register(_ make: () -> any EventListenerHandling) {
    let before = handle
    // Not under the lock: `isActive` may end the object of a listener, whose `deinit` is user code.
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

/// An `EventMethod` of unknown types.
package protocol AnyEventMethod {
  /// The handle of the handler; nil before the property is registered.
  var projectedValue: (any EventListenerHandling)? { get }
  /// Registers the property as a listener of `owner`. `actor`: the caller's, if it is known.
  func register(owner: AnyObject, on listener: EventListener, _ actor: (any Actor)?)
  /// Registers the property as a callback of the thread that has it.
  func register(thread: EventThread)
}

extension EventMethod: AnyEventMethod {
  package func register(owner: AnyObject, on listener: EventListener, _ actor: (any Actor)?) {
    requireOwner(owner)
    registration.register {
      // The handlers of an actor are called on it, even if its initialiser, which is not, registers them.
      listener.addListener(
        owner, executeOn, owner as? any Actor ?? actor, isOnce: false, interest,
        HandlerCallback(owned: wrappedValue, filter: filter))
    }
  }

  package func register(thread: EventThread) {
    switch executeOn {
    case nil, .requesterThread: break
    default:
      require(
        thread.consumer.hooks.member == nil,
        """
        Each event of a pool comes to one of its threads, and the @EventMethod<\(Owner.self), \(Event.self)> of a \
        \(type(of: thread)) in a pool names a place with executeOn, where each thread's property would hear every event: \
        leave executeOn out, or register one listener beside the pool.
        """)
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

/// The `EventMethod` properties of an object, those of its base classes first.
package func eventMethods(of object: AnyObject) -> [any AnyEventMethod] {
  // Not by a mirror, which reads all properties: others may be writing some, and an `unowned` object may have gone.
  let base = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
  func load<Method: AnyEventMethod>(_: Method.Type, _ offset: Int) -> any AnyEventMethod {
    base.load(fromByteOffset: offset, as: Method.self)
  }
  return withExtendedLifetime(object) {
    storedProperties(of: type(of: object)).compactMap { type, offset in
      // A structure, and so neither `weak` nor `unowned`. Nobody writes it after the object's initialiser.
      (type as? any AnyEventMethod.Type).map { load($0, offset) }
    }
  }
}

/// An object that listens to events by ``EventMethod`` properties.
public protocol EventListening: AnyObject {
  // Disfavoured, so that a call takes the form with a parameter, which knows the caller's actor.

  /// Registers the object's listeners: by default all its ``EventMethod`` properties, on
  /// ``EventCentral/shared``. Call it in the context in which the listeners are to be called, for instance
  /// at the end of the initialiser: on the MainActor, if the class is isolated to it. The compiler does not
  /// check that.
  ///
  /// Properties that are registered already stay so.
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

  /// Registers the object's listeners, by the class's own ``registerListeners()`` if it has one.
  ///
  /// - Parameter isolation: Leave it out. On an actor, listeners that are registered meanwhile without
  ///   `executeOn:` or with `.requesterThread` are called on that actor.
  ///
  /// **Threads**, **Complexity**: as ``registerListeners(on:isolation:)``.
  public func registerListeners(isolation: isolated (any Actor)? = #isolation) {
    // This type selects the requirement, which a class may implement.
    let register: () -> Void = registerListeners
    RegisteringActor.with(isolation, register)
  }

  /// Registers all ``EventMethod`` properties on a central, or with a listener.
  ///
  /// - Parameters:
  ///   - listenable: A central, an event thread, the place of a pump, a pool or a listener that you made.
  ///   - isolation: Leave it out. On an actor, the closures are called on that actor.
  ///
  /// **Threads**: the main thread, an actor, or a handler; any, if all properties have `executeOn:` or are
  /// those of an actor (``ExecuteEventOn/requesterThread`` says why).
  ///
  /// **Complexity**: O(properties), by reflection: some microseconds. Of the object it reads these properties alone.
  public func registerListeners(
    on listenable: any EventListenable, isolation: isolated (any Actor)? = #isolation
  ) {
    for method in eventMethods(of: self) {
      method.register(owner: self, on: listenable.listener, isolation)
    }
  }
}
