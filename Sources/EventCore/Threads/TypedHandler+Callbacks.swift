// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// How the forms of callback become handlers.

extension TypedHandler {
  /// A closure that takes the event alone.
  @inlinable
  convenience init(
    _ callback: @escaping @Sendable (_ event: E) -> Void, _ interest: HandlerInterest<E>
  ) {
    if interest.takesAny {
      self.init(plain: callback, isLatestOnly: interest.isLatestOnly)
      return
    }
    let state = HandlerState(isTimed: interest.isTimed)
    self.init(state, isLatestOnly: interest.isLatestOnly) { event, lane, time, _ in
      guard interest.admits(event, lane, time), !interest.hasEnded(state) else { return false }
      callback(event)
      return true
    }
  }

  /// A closure that takes the event, its priority and its time.
  @inlinable
  convenience init(
    _ callback:
      @escaping @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void, _ interest: HandlerInterest<E>
  ) {
    let state = HandlerState(isTimed: true)
    self.init(state, isLatestOnly: interest.isLatestOnly) { event, lane, time, _ in
      guard interest.admits(event, lane, time), !interest.hasEnded(state) else { return false }
      callback(event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      return true
    }
  }

  /// A method of the thread's class that takes the event alone. The class has been checked.
  @inlinable
  convenience init<Owner: EventThread>(
    _ method: @escaping @Sendable (Owner) -> (_ event: E) -> Void, _ interest: HandlerInterest<E>
  ) {
    let state = HandlerState(isTimed: interest.isTimed)
    self.init(state, needsOwner: true, isLatestOnly: interest.isLatestOnly) {
      event, lane, time, owner in
      guard interest.admits(event, lane, time), !interest.hasEnded(state) else { return false }
      // There, since `needsOwner`; its class has been checked, and it lives over the call.
      owner.unsafelyUnwrapped._withUnsafeGuaranteedRef { thread in
        method(unsafeDowncast(thread, to: Owner.self))(event)
      }
      return true
    }
  }

  /// A method of the thread's class that takes the event, its priority and its time. The class has
  /// been checked.
  @inlinable
  convenience init<Owner: EventThread>(
    _ method:
      @escaping @Sendable (Owner) -> (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void, _ interest: HandlerInterest<E>
  ) {
    let state = HandlerState(isTimed: true)
    self.init(state, needsOwner: true, isLatestOnly: interest.isLatestOnly) {
      event, lane, time, owner in
      guard interest.admits(event, lane, time), !interest.hasEnded(state) else { return false }
      let priority = Lane(index: lane).priority
      let dispatchTime = DispatchTime(uptimeNanoseconds: time)
      // As above.
      owner.unsafelyUnwrapped._withUnsafeGuaranteedRef { thread in
        method(unsafeDowncast(thread, to: Owner.self))(event, priority, dispatchTime)
      }
      return true
    }
  }
}

extension HandlerInterest {
  /// Whether the filter, which is user code, has ended the handler that it was asked for: then this
  /// is not called any more (D6). After the filter.
  @inlinable
  func hasEnded(_ handler: HandlerState) -> Bool { filter != nil && handler.isEnded }
}
