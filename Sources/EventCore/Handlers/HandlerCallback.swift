// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// What the user wants done with an event, in whatever form it was written, as closures of one form:
/// for the listeners, the callbacks of event threads and `EventMethod`.
@usableFromInline
struct HandlerCallback<E: Eventable> {
  @usableFromInline
  typealias General = TypedHandler<E>.General

  /// Whether `call` or `judge` wants the time of dispatch.
  @usableFromInline let isTimed: Bool
  /// Whether both are given an object: the requester, or the event thread.
  @usableFromInline let needsOwner: Bool
  /// Calls the user's closure; always true.
  @usableFromInline let call: General
  /// A filter that needs the object; nil if there is none.
  @usableFromInline let judge: General?
  /// The same as `call`, if it takes nothing but the event: one closure less on the way.
  @usableFromInline let plain: ((E) -> Void)?

  @inlinable
  init(
    isTimed: Bool, needsOwner: Bool = false, judge: General? = nil, plain: ((E) -> Void)? = nil,
    call: @escaping General
  ) {
    self.isTimed = isTimed || judge != nil
    self.needsOwner = needsOwner
    self.judge = judge
    self.plain = plain
    self.call = call
  }

  // MARK: Closures

  /// A closure that takes the event.
  @inlinable
  init(_ callback: @escaping (E) -> Void) {
    self.init(isTimed: false, plain: callback) { event, _, _, _ in
      callback(event)
      return true
    }
  }

  /// A closure that takes the event, its priority and its time.
  @inlinable
  init(_ callback: @escaping (E, EventPriority, DispatchTime) -> Void) {
    self.init(isTimed: true) { event, lane, time, _ in
      callback(event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      return true
    }
  }

  /// A closure of the MainActor that takes the event. Called on the main queue.
  @inlinable
  init(onMain callback: @escaping @MainActor @Sendable (E) -> Void) {
    self.init { event in MainActor.assumeIsolated { callback(event) } }
  }

  /// A closure of the MainActor that takes the event, its priority and its time.
  @inlinable
  init(onMain callback: @escaping @MainActor @Sendable (E, EventPriority, DispatchTime) -> Void) {
    self.init { event, priority, time in MainActor.assumeIsolated { callback(event, priority, time) } }
  }

  /// A closure that is given the actor it runs on, and the event.
  @inlinable
  init<Owner: Actor>(on callback: @escaping @Sendable (isolated Owner, E) -> Void) {
    self.init(isTimed: false, needsOwner: true) { event, _, _, owner in
      withOwner(owner) { (owner: Owner) in owner.assumeIsolated { callback($0, event) } }
      return true
    }
  }

  // MARK: Closures and methods of an object, and closures that judge for it

  /// A closure that is given the object, and the event.
  @inlinable
  init<Owner: AnyObject>(owned callback: @escaping (Owner, E) -> Void) {
    self.init(isTimed: false, needsOwner: true) { event, _, _, owner in
      withOwner(owner) { callback($0, event) }
      return true
    }
  }

  /// A closure that is given the object, the event, its priority and its time.
  @inlinable
  init<Owner: AnyObject>(
    owned callback: @escaping (Owner, E, EventPriority, DispatchTime) -> Void,
    filter: ((Owner, E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(isTimed: true, needsOwner: true, judge: filter.map(Self.judge)) { event, lane, time, owner in
      withOwner(owner) {
        callback($0, event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
      return true
    }
  }

  /// A method that takes the event.
  @inlinable
  init<Owner: AnyObject>(
    _ method: @escaping (Owner) -> (E) -> Void,
    filter: ((Owner, E, EventPriority, DispatchTime) -> Bool)? = nil
  ) {
    self.init(isTimed: false, needsOwner: true, judge: filter.map(Self.judge)) { event, _, _, owner in
      withOwner(owner) { method($0)(event) }
      return true
    }
  }

  /// A method that takes the event, its priority and its time.
  @inlinable
  init<Owner: AnyObject>(
    _ method: @escaping (Owner) -> (E, EventPriority, DispatchTime) -> Void,
    filter: ((Owner, E, EventPriority, DispatchTime) -> Bool)? = nil
  ) {
    self.init(isTimed: true, needsOwner: true, judge: filter.map(Self.judge)) { event, lane, time, owner in
      withOwner(owner) {
        method($0)(event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
      return true
    }
  }

  /// A method of the MainActor that takes the event. Called on the main queue.
  @inlinable
  init<Owner: AnyObject>(
    onMain method: @escaping @MainActor (Owner) -> @MainActor (E) -> Void,
    filter: (@MainActor (Owner, E, EventPriority, DispatchTime) -> Bool)? = nil
  ) {
    self.init(isTimed: false, needsOwner: true, judge: filter.map(Self.judgeOnMain)) {
      event, _, _, owner in
      withOwnerOnMain(owner) { method($0)(event) }
      return true
    }
  }

  /// A method of the MainActor that takes the event, its priority and its time.
  @inlinable
  init<Owner: AnyObject>(
    onMain method:
      @escaping @MainActor (Owner) -> @MainActor (E, EventPriority, DispatchTime) -> Void,
    filter: (@MainActor (Owner, E, EventPriority, DispatchTime) -> Bool)? = nil
  ) {
    self.init(isTimed: true, needsOwner: true, judge: filter.map(Self.judgeOnMain)) {
      event, lane, time, owner in
      withOwnerOnMain(owner) {
        method($0)(event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
      return true
    }
  }

  @inlinable
  static func judge<Owner: AnyObject>(
    _ filter: @escaping (Owner, E, EventPriority, DispatchTime) -> Bool
  ) -> General {
    { event, lane, time, owner in
      withOwner(owner) {
        filter($0, event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
    }
  }

  @inlinable
  static func judgeOnMain<Owner: AnyObject>(
    _ filter: @escaping @MainActor (Owner, E, EventPriority, DispatchTime) -> Bool
  ) -> General {
    { event, lane, time, owner in
      withOwnerOnMain(owner) {
        filter($0, event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
      }
    }
  }
}

/// Gives a handler's object to a closure that needs it.
@inlinable
@inline(__always)
func withOwner<Owner: AnyObject, Result>(
  _ owner: Unmanaged<AnyObject>?, _ body: (Owner) -> Result
) -> Result {
  // There, since the callback needs it; of this class: it came with the callback, or was checked.
  // Whoever calls the handler holds it over the call.
  owner.unsafelyUnwrapped._withUnsafeGuaranteedRef { body(unsafeDowncast($0, to: Owner.self)) }
}

/// The same on the MainActor, which the call checks.
@inlinable
@inline(__always)
func withOwnerOnMain<Owner: AnyObject, Result: Sendable>(
  _ owner: Unmanaged<AnyObject>?, _ body: @MainActor (Owner) -> Result
) -> Result {
  // Not sent anywhere: `assumeIsolated` runs its closure on the calling thread before it returns.
  nonisolated(unsafe) let owner = owner
  return MainActor.assumeIsolated { withOwner(owner) { body($0) } }
}

extension TypedHandler {
  /// A callback of an event thread.
  @inlinable
  convenience init(_ callback: HandlerCallback<E>, _ interest: HandlerInterest<E>) {
    let (call, judge) = (callback.call, callback.judge)
    if let plain = callback.plain, interest.takesAny {
      self.init(plain: plain, isLatestOnly: interest.isLatestOnly)
      return
    }
    let state = HandlerState(isTimed: callback.isTimed || interest.isTimed)
    if interest.takesAny {
      self.init(
        state, needsOwner: callback.needsOwner, isLatestOnly: interest.isLatestOnly, general: call)
      return
    }
    self.init(state, needsOwner: callback.needsOwner, isLatestOnly: interest.isLatestOnly) {
      event, lane, time, owner in
      guard
        interest.admits(event, lane, time), judge?(event, lane, time, owner) != false,
        !interest.hasEnded(state)
      else { return false }
      return call(event, lane, time, owner)
    }
  }
}
