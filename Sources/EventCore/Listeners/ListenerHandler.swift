// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// How the forms of listener become handlers. Everything generic is here and in the public shells.

/// What a listener does with an event: the user's callback in whatever form, as one closure.
@usableFromInline
struct ListenerCallback<E: Eventable> {
  /// `requester` is there if the listener has one.
  @usableFromInline
  typealias Call = (
    _ event: E, _ lane: UInt8, _ time: UInt64, _ requester: AnyObject?
  ) -> Void
  @usableFromInline
  typealias Judge = (
    _ event: E, _ lane: UInt8, _ time: UInt64, _ requester: AnyObject?
  ) -> Bool

  /// Whether `call` or `judge` wants the time of dispatch.
  @usableFromInline let isTimed: Bool
  @usableFromInline let call: Call
  /// A filter that needs the requester; nil if there is none.
  @usableFromInline let judge: Judge?
  /// The same as `call`, if it takes nothing but the event: one closure less on the way.
  @usableFromInline let plain: ((E) -> Void)?

  @inlinable
  init(
    isTimed: Bool, judge: Judge? = nil, plain: ((E) -> Void)? = nil, call: @escaping Call
  ) {
    self.isTimed = isTimed || judge != nil
    self.judge = judge
    self.plain = plain
    self.call = call
  }

  /// A closure that takes the event.
  @inlinable
  init(_ callback: @escaping (E) -> Void) {
    self.init(isTimed: false, plain: callback) { event, _, _, _ in callback(event) }
  }

  /// A closure that takes the event, its priority and its time.
  @inlinable
  init(_ callback: @escaping (E, EventPriority, DispatchTime) -> Void) {
    self.init(isTimed: true) { event, lane, time, _ in
      callback(event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
    }
  }

  /// A method of the requester that takes the event, and perhaps one that judges it.
  @inlinable
  init<Owner: AnyObject>(
    _ method: @escaping (Owner) -> (E) -> Void,
    filter: ((Owner, E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(isTimed: false, judge: filter.map(Self.judge)) { event, _, _, requester in
      // The requester is of this class: it came with the method.
      method(unsafeDowncast(requester.unsafelyUnwrapped, to: Owner.self))(event)
    }
  }

  /// A method of the requester that takes the event, its priority and its time, and perhaps one
  /// that judges it.
  @inlinable
  init<Owner: AnyObject>(
    _ method: @escaping (Owner) -> (E, EventPriority, DispatchTime) -> Void,
    filter: ((Owner, E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(isTimed: true, judge: filter.map(Self.judge)) { event, lane, time, requester in
      method(unsafeDowncast(requester.unsafelyUnwrapped, to: Owner.self))(
        event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
    }
  }

  /// A closure of the MainActor that takes the event. Called on the main queue.
  @inlinable
  init(onMain callback: @escaping @MainActor @Sendable (E) -> Void) {
    self.init(isTimed: false) { event, _, _, _ in
      MainActor.assumeIsolated { callback(event) }
    }
  }

  /// A closure of the MainActor that takes the event, its priority and its time.
  @inlinable
  init(onMain callback: @escaping @MainActor @Sendable (E, EventPriority, DispatchTime) -> Void) {
    self.init(isTimed: true) { event, lane, time, _ in
      MainActor.assumeIsolated {
        callback(event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
    }
  }

  /// A method of a requester on the MainActor that takes the event, and perhaps one that judges it.
  @inlinable
  init<Owner: AnyObject>(
    onMain method: @escaping @MainActor (Owner) -> @MainActor (E) -> Void,
    filter: (@MainActor (Owner, E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(isTimed: false, judge: filter.map(Self.judgeOnMain)) { event, _, _, requester in
      // Not sent anywhere: this is the MainActor, which the call checks.
      nonisolated(unsafe) let owner = unsafeDowncast(
        requester.unsafelyUnwrapped, to: Owner.self)
      MainActor.assumeIsolated { method(owner)(event) }
    }
  }

  /// A method of a requester on the MainActor that takes the event, its priority and its time, and
  /// perhaps one that judges it.
  @inlinable
  init<Owner: AnyObject>(
    onMain method:
      @escaping @MainActor (Owner) ->
      @MainActor (E, EventPriority, DispatchTime) ->
      Void,
    filter: (@MainActor (Owner, E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(isTimed: true, judge: filter.map(Self.judgeOnMain)) { event, lane, time, requester in
      // As above.
      nonisolated(unsafe) let owner = unsafeDowncast(
        requester.unsafelyUnwrapped, to: Owner.self)
      MainActor.assumeIsolated {
        method(owner)(
          event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
    }
  }

  /// A closure that is given the actor it runs on, and the event.
  @inlinable
  init<Owner: Actor>(on callback: @escaping @Sendable (isolated Owner, E) -> Void) {
    self.init(isTimed: false) { event, _, _, requester in
      unsafeDowncast(requester.unsafelyUnwrapped, to: Owner.self).assumeIsolated {
        callback($0, event)
      }
    }
  }

  @inlinable
  static func judge<Owner: AnyObject>(
    _ filter: @escaping (Owner, E, EventPriority, DispatchTime) -> Bool
  ) -> Judge {
    { event, lane, time, requester in
      filter(
        unsafeDowncast(requester.unsafelyUnwrapped, to: Owner.self), event,
        Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
    }
  }
}

extension ListenerCallback {
  @inlinable
  static func judgeOnMain<Owner: AnyObject>(
    _ filter: @escaping @MainActor (Owner, E, EventPriority, DispatchTime) -> Bool
  ) -> Judge {
    { event, lane, time, requester in
      // As above.
      nonisolated(unsafe) let owner = unsafeDowncast(
        requester.unsafelyUnwrapped, to: Owner.self)
      return MainActor.assumeIsolated {
        filter(
          owner, event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
    }
  }
}

/// A filter of the MainActor, to be called on the main queue.
@inlinable
func onMainActor<E: Eventable>(
  _ filter: @escaping @MainActor @Sendable (E, EventPriority, DispatchTime) -> Bool
) -> HandlerInterest<E>.Filter {
  { event, priority, time in MainActor.assumeIsolated { filter(event, priority, time) } }
}

extension HandlerInterest {
  /// An interest whose filter the listener asks itself, since it needs the requester.
  @inlinable
  init(_ interest: EventListenerInterest, maximumAge: UInt64, isJudged: Bool) {
    self.init(
      interest, maximumAge: maximumAge, customFilter: isJudged ? { _, _, _ in true } : nil)
  }
}

extension ListenerRegistration {
  /// The handler of this listener.
  @inlinable
  func handler<E: Eventable>(
    _ callback: ListenerCallback<E>, _ interest: HandlerInterest<E>
  ) -> TypedHandler<E> {
    let (call, judge) = (callback.call, callback.judge)
    let isOnce = isOnce
    let state = HandlerState(isTimed: callback.isTimed || interest.isTimed)
    guard hasRequester else {
      if let plain = callback.plain, interest.takesAny, !isOnce {
        return TypedHandler(plain: plain, isLatestOnly: interest.isLatestOnly)
      }
      return TypedHandler(state, isLatestOnly: interest.isLatestOnly) { event, lane, time, _ in
        guard
          interest.admits(event, lane, time), !interest.hasEnded(state),
          !isOnce || self.claimOnlyCall()
        else { return false }
        call(event, lane, time, nil)
        return true
      }
    }
    let general: TypedHandler<E>.General = { event, lane, time, _ in
      // Held over the call and the filters', which may be the requester's methods.
      guard let held = self.holdRequester() else { return false }
      let isWanted = held.object._withUnsafeGuaranteedRef { requester in
        guard
          interest.admits(event, lane, time), judge?(event, lane, time, requester) != false,
          !interest.hasEnded(state), !isOnce || self.claimOnlyCall()
        else { return false }
        call(event, lane, time, requester)
        return true
      }
      if held.isForOneCall { self.letGoOfRequester() }
      return isWanted
    }
    if let plain = callback.plain, let requester = unretainedRequester, interest.takesAny, !isOnce {
      return TypedHandler(
        plain: plain, requester: requester, isLatestOnly: interest.isLatestOnly, general: general)
    }
    return TypedHandler(state, isLatestOnly: interest.isLatestOnly, general: general)
  }
}

extension EventListener {
  /// Registers a listener of any form. `executeOn`: nil is the caller's own context, which has to
  /// be one; `actor`: where that and `.requesterThread` are, if the caller is on one.
  @inlinable
  func addListener<E: Eventable>(
    _ requester: AnyObject?, _ executeOn: ExecuteEventOn?, _ actor: (any Actor)?, isOnce: Bool,
    _ interest: HandlerInterest<E>, _ callback: ListenerCallback<E>
  ) -> any EventListenerHandling {
    add(requester, executeOn, actor, isOnce: isOnce, eventTypeActions(E.self)) {
      $0.handler(callback, interest)
    }
  }
}
