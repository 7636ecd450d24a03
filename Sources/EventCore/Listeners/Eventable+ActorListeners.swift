// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners on the MainActor and on other actors, wherever they are registered.

extension Eventable {
  /// Has a closure or a method of the MainActor called for every event of this type, with its
  /// priority and the time of its dispatch: on the main queue, wherever it is registered.
  ///
  /// - Parameters: As for the other forms. A requester is not retained; nil means until it is
  ///   removed.
  /// - Returns: A handle that tells how many events wait for the main queue, and removes the
  ///   listener.
  ///
  /// **Threads**: any, also inside a handler. Somebody has to serve the main queue: an
  /// application's run loop, `dispatchMain()`, or an `async` main function.
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

  /// Has a closure or a method of the MainActor called for every event of this type: on the main
  /// queue, wherever it is registered. The clock is not read for it.
  ///
  /// All else is as for the form with three arguments.
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

  /// Has a method of a requester on the MainActor called for every event of this type, with its
  /// priority and the time of its dispatch, on the main queue and without retaining the requester.
  ///
  /// - Parameters: As for other methods that are named without their object.
  /// - Returns: A handle that tells how many events wait for the main queue, and removes the
  ///   listener.
  ///
  /// **Threads**: any, also inside a handler.
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

  /// Has a method of a requester on the MainActor called for every event of this type, on the main
  /// queue and without retaining the requester. The clock is not read for it.
  ///
  /// All else is as for a method of the MainActor with three arguments.
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

  /// Not to be called: a method of the MainActor is called on the main queue, without `executeOn:`.
  ///
  /// The compiler does not look at the isolation of a function that a function returns, and would take
  /// such a method for one that any thread may call. With this form it finds two, and refuses.
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

  /// Has a closure called on an actor for every event of this type, without retaining the actor.
  ///
  /// ```swift
  /// TemperatureEvent.addListener(store) { (store: isolated Store, event) in
  ///   store.latest = event.temperatureInCelsius
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - requester: Where the callback is called, and whom the listener belongs to: it ends with it
  ///     (D9).
  ///   - callback: Is given the actor and the event.
  ///   - interest: Which of these events it wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event that it wants.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to, as ``EventListenable`` tells.
  /// - Returns: A handle that tells where it runs, and removes it.
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
