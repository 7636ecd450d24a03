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

  @inlinable
  init(isTimed: Bool, judge: Judge? = nil, call: @escaping Call) {
    self.isTimed = isTimed || judge != nil
    self.judge = judge
    self.call = call
  }

  /// A closure that takes the event.
  @inlinable
  init(_ callback: @escaping (E) -> Void) {
    self.init(isTimed: false) { event, _, _, _ in callback(event) }
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
    filter: ((Owner) -> (E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(isTimed: false, judge: filter.map(Self.judge)) { event, _, _, requester in
      // The requester is of this class: it came with the method.
      method(unsafeDowncast(requester.unsafelyUnwrapped, to: Owner.self))(event)
    }
  }

  /// A method of the requester that takes the event, its priority and its time, and perhaps one that
  /// judges it.
  @inlinable
  init<Owner: AnyObject>(
    _ method: @escaping (Owner) -> (E, EventPriority, DispatchTime) -> Void,
    filter: ((Owner) -> (E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(isTimed: true, judge: filter.map(Self.judge)) { event, lane, time, requester in
      method(unsafeDowncast(requester.unsafelyUnwrapped, to: Owner.self))(
        event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
    }
  }

  @inlinable
  static func judge<Owner: AnyObject>(
    _ filter: @escaping (Owner) -> (E, EventPriority, DispatchTime) -> Bool
  ) -> Judge {
    { event, lane, time, requester in
      filter(unsafeDowncast(requester.unsafelyUnwrapped, to: Owner.self))(
        event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
    }
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
    let isTimed = callback.isTimed || interest.isTimed
    guard hasRequester else {
      return TypedHandler(isTimed: isTimed, isLatestOnly: interest.isLatestOnly) {
        event, lane, time, _ in
        guard interest.admits(event, lane, time), !isOnce || self.claimOnlyCall()
        else { return false }
        call(event, lane, time, nil)
        return true
      }
    }
    return TypedHandler(isTimed: isTimed, isLatestOnly: interest.isLatestOnly) {
      event, lane, time, _ in
      // Held over the call, the filters' too: they may be the requester's methods.
      guard let requester = self.holdRequester() else { return false }
      let isWanted =
        interest.admits(event, lane, time) && judge?(event, lane, time, requester) != false
        && (!isOnce || self.claimOnlyCall())
      if isWanted {
        call(event, lane, time, requester)
      }
      self.letGo(consume requester)
      return isWanted
    }
  }
}

extension EventListener {
  /// Registers a listener of any form.
  @inlinable
  func addListener<E: Eventable>(
    _ requester: AnyObject?, _ executeOn: ExecuteEventOn, isOnce: Bool,
    _ interest: HandlerInterest<E>, _ callback: ListenerCallback<E>
  ) -> any EventListenerHandling {
    add(requester, executeOn, isOnce: isOnce, eventTypeActions(E.self)) {
      $0.handler(callback, interest)
    }
  }
}
