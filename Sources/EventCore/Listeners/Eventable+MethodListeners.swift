// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners with a method that is named without its object, which retain nothing.
//
// Here and in the other files: what takes a method is the last choice. A closure of several
// statements says nothing of its result, so that `{ event in … }` could be one that is given the
// owner and returns a function, and would be ambiguous.
//
// A filter is a closure and no second method: the compiler does not look at the isolation of a function
// that a function returns, and would take a method of an actor for one that any thread may call.

extension Eventable {
  /// Has a method of the requester called for every event of this type, with its priority and the
  /// time of its dispatch, where it is registered and without retaining the requester.
  ///
  /// ```swift
  /// TemperatureRatingEvent.addListener(self, Model.onRating)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: Whose method it is. The listener ends with it (D9).
  ///   - method: A method of the requester's class, named without its object.
  ///   - interest: Which of these events it wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event that it wants:
  ///     `{ owner, event, priority, dispatchTime in owner.wants(event) }`.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to, as ``EventListenable`` tells.
  ///   - isolation: Leave it out. On an actor, the method is called on that actor.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as for the closure that is called where it is registered. A method of a
  /// global actor other than the MainActor is passed as a closure: the compiler does not look at the
  /// isolation of a function that a function returns, and would have it called anywhere.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method:
      @escaping (Owner) -> (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, nil, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(method, filter: customFilter))
  }

  /// Has a method of the requester called for every event of this type, where it is registered and
  /// without retaining the requester. The clock is not read for it.
  ///
  /// All else is as for the method with three arguments.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method: @escaping (Owner) -> (_ event: Self) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, nil, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(method, filter: customFilter))
  }

  /// Has a method of a requester that any thread may use called for every event of this type, in a
  /// place that it names and without retaining the requester. The clock is not read for it.
  ///
  /// - Parameters: As for a method that is called where it is registered, and `executeOn` as for a
  ///   closure.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**: any, also inside a handler. A method of the MainActor is refused here: leave
  /// `executeOn:` out.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject & Sendable>(
    _ requester: Owner,
    _ method: @escaping @Sendable (Owner) -> (_ event: Self) -> Void,
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
    source.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(method, filter: customFilter))
  }
}
