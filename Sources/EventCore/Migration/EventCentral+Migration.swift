// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// What programs that come from EventDrivenSwift write about the central, and the compiler's answer
// where something else is to be written.

extension EventCentral {
  /// The shared central, as EventDrivenSwift abbreviates it: `EventCentral[]`.
  ///
  /// **Threads**: any. **Ownership**: it lasts as long as the program.
  public static subscript() -> EventCentral { shared }

  /// Has a closure or a method called for every event of a type that is dispatched on the shared
  /// central, for as long as its requester lives.
  ///
  /// In new code say it of the event: `SomeEvent.addListener(self, onSomeEvent)`, which has more
  /// forms.
  ///
  /// - Parameters: As for ``EventListenable``'s form on a central.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Complexity**: as that form.
  @inlinable
  @discardableResult
  public static func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    _ callback: @escaping TypedEventCallback<E>,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: TypedEventFilterCallback<E>? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    shared.addListener(
      requester, callback, forEventType: type, executeOn: executeOn, interestedIn: interest,
      maximumAge: maximumAge, customFilter: customFilter, isolation: isolation)
  }

  /// Has a closure called for every event of a type that is dispatched on the shared central, until
  /// it is removed; the requester may be nil.
  ///
  /// In new code say it of the event: `SomeEvent.addListener(nil) { event in ... }`.
  ///
  /// - Parameters: As for ``EventListenable``'s form on a central.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Complexity**: as that form.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener<E: Eventable>(
    _ requester: AnyObject?,
    _ callback:
      @escaping @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    shared.addListener(
      requester, callback, forEventType: type, executeOn: executeOn, interestedIn: interest,
      maximumAge: maximumAge, customFilter: customFilter, isolation: isolation)
  }

  /// Has a closure or a method of the MainActor called for every event of a type that is dispatched
  /// on the shared central: on the main queue, wherever it is registered.
  ///
  /// - Parameters: As for ``EventListenable``'s form on a central.
  /// - Returns: A handle that tells how many events wait for the main queue, and removes the
  ///   listener.
  ///
  /// **Threads**, **Order**, **Complexity**: as that form.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener<E: Eventable>(
    _ requester: AnyObject?,
    _ callback:
      @escaping @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) ->
        Bool
    )? = nil
  ) -> any EventListenerHandling {
    shared.addListener(
      requester, callback, forEventType: type, interestedIn: interest, maximumAge: maximumAge,
      customFilter: customFilter)
  }
}

extension EventCentral {
  /// Not there: a central keeps no event.
  @available(
    *, unavailable,
    message:
      "Nothing waits in a central. Ask a thread for its eventCount, or a handle for its waitingEventCount."
  )
  public static var eventCount: Int {
    fatalError(
      """
      A central keeps no event, and was asked how many it has: ask a thread for its eventCount, or a handle \
      for its waitingEventCount.
      """)
  }

  /// Not there: callbacks register their thread.
  @available(
    *, unavailable,
    message:
      "A thread gets the events for which it has a callback: addEventCallback(_:forEventType:)."
  )
  public static func addReceiver(_ receiver: AnyObject, forEventType: any Eventable.Type) {}

  /// Not there: the removal of its callbacks takes a thread off.
  @available(
    *, unavailable,
    message: "Remove its callbacks by their handles, or end the thread: remove(), cancel()."
  )
  public static func removeReceiver(_ receiver: AnyObject, forEventType: any Eventable.Type) {}

  /// Not there: the end of a thread takes it off.
  @available(
    *, unavailable,
    message: "Remove its callbacks by their handles, or end the thread: remove(), cancel()."
  )
  public static func removeReceiver(_ receiver: AnyObject) {}
}
