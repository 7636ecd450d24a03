// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners on the MainActor and on other actors, wherever they are registered.

extension Eventable {
  /// Calls a closure or a method of the MainActor for every event of this type, with its priority and the
  /// time of its dispatch, on the main queue.
  ///
  /// All else is as for the form that is called where it is registered, except that the main queue has to
  /// be served: by an application's run loop, `dispatchMain()`, or an `async` main function.
  ///
  /// **Threads**: any, also inside a handler.
  @inlinable
  @discardableResult
  public static func addListener(
    _ requester: AnyObject?,
    _ callback:
      @escaping @MainActor @Sendable (
        _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
        -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, .main, nil, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, onMain: customFilter),
      HandlerCallback(onMain: callback))
  }

  /// Calls a closure or a method of the MainActor for every event of this type, on the main queue. All else
  /// is as for the form with three arguments.
  @inlinable
  @discardableResult
  public static func addListener(
    _ requester: AnyObject?,
    _ callback: @escaping @MainActor @Sendable (_ event: Self) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
        -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, .main, nil, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, onMain: customFilter),
      HandlerCallback(onMain: callback))
  }

  /// Calls a method of the requester on the MainActor for every event of this type, with its priority and
  /// the time of its dispatch, on the main queue, and does not retain the requester. All else is as for the
  /// form with a closure.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method:
      @escaping @MainActor (Owner) ->
      @MainActor (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor (
        _ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, .main, nil, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(onMain: method, filter: customFilter))
  }

  /// Calls a method of the requester on the MainActor for every event of this type, on the main queue, and
  /// does not retain the requester. All else is as for the method with three arguments.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method: @escaping @MainActor (Owner) -> @MainActor (_ event: Self) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor (
        _ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, .main, nil, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(onMain: method, filter: customFilter))
  }

  /// Do not call this: a method of the MainActor is called on the main queue, without `executeOn:`.
  ///
  /// The compiler does not check the isolation of a function that a function returns, and would accept such
  /// a method as one for any thread. With this form it finds the call ambiguous, and refuses it.
  @available(swift, introduced: 6)
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject & Sendable>(
    _ requester: Owner,
    _ method: @escaping @MainActor @Sendable (Owner) -> @MainActor (_ event: Self) -> Void,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (
        _ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    fatalError(
      """
      A method of the MainActor is called on the main queue, and executeOn: asks for \(executeOn): leave it \
      out.
      """)
  }

  /// Calls a closure on an actor for every event of this type, and does not retain the actor.
  ///
  /// ```swift
  /// TemperatureEvent.addListener(store) { (store: isolated Store, event) in
  ///   store.latest = event.temperatureInCelsius
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The actor on which the callback is called. The listener ends with it (D9).
  ///   - callback: Called with the actor and the event.
  ///   - interest: For which events the callback is called; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event for which the callback is called.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to (``EventListenable``).
  /// - Returns: The listener's handle.
  ///
  /// **Threads**: any, also inside a handler, and the actor's own initialiser.
  @inlinable
  @discardableResult
  public static func addListener<Owner: Actor>(
    _ requester: Owner,
    _ callback: @escaping @Sendable (_ owner: isolated Owner, _ event: Self) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, .requesterThread, requester, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      HandlerCallback(on: callback))
  }
}
