// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A user's closure or method, of any form, in the one form in which handlers call it: for listeners, the
/// callbacks of event threads, and `EventMethod`.
@usableFromInline
struct HandlerCallback<E: Eventable> {
  @usableFromInline
  typealias General = TypedHandler<E>.General

  /// Whether `call` or `judge` needs the time of dispatch.
  @usableFromInline let isTimed: Bool
  /// Whether both are passed an object: the requester, or the event thread.
  @usableFromInline let needsOwner: Bool
  /// Calls the user's closure, and returns true.
  @usableFromInline let call: General
  /// A filter that is passed the object; nil if there is none.
  @usableFromInline let judge: General?
  /// The user's closure itself, if it takes the event alone.
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

  /// A closure that takes the actor on which it runs, and the event.
  @inlinable
  init<Owner: Actor>(on callback: @escaping @Sendable (isolated Owner, E) -> Void) {
    self.init(isTimed: false, needsOwner: true) { event, _, _, owner in
      withOwner(owner) { (owner: Owner) in owner.assumeIsolated { callback($0, event) } }
      return true
    }
  }

  // MARK: Closures that are passed an object, and methods of it

  /// A closure that takes the object and the event.
  @inlinable
  init<Owner: AnyObject>(owned callback: @escaping (Owner, E) -> Void) {
    self.init(isTimed: false, needsOwner: true) { event, _, _, owner in
      withOwner(owner) { callback($0, event) }
      return true
    }
  }

  /// A closure that takes the object, the event, its priority and its time.
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
    self.init(
      isTimed: false, needsOwner: true, judge: filter.map(Self.onMain),
      call: Self.onMain { (owner: Owner, event, _, _) in
        method(owner)(event)
        return true
      })
  }

  /// A method of the MainActor that takes the event, its priority and its time.
  @inlinable
  init<Owner: AnyObject>(
    onMain method:
      @escaping @MainActor (Owner) -> @MainActor (E, EventPriority, DispatchTime) -> Void,
    filter: (@MainActor (Owner, E, EventPriority, DispatchTime) -> Bool)? = nil
  ) {
    self.init(
      isTimed: true, needsOwner: true, judge: filter.map(Self.onMain),
      call: Self.onMain { (owner: Owner, event, priority, time) in
        method(owner)(event, priority, time)
        return true
      })
  }

  /// A function that returns a result, such as a filter, in the form of `General`.
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

  /// The same for a function of the MainActor. The call checks that it runs there.
  @inlinable
  static func onMain<Owner: AnyObject>(
    _ body: @escaping @MainActor (Owner, E, EventPriority, DispatchTime) -> Bool
  ) -> General {
    { event, lane, time, owner in
      // `assumeIsolated` runs its closure on the calling thread before it returns, so the owner is not sent.
      nonisolated(unsafe) let owner = owner
      return MainActor.assumeIsolated {
        withOwner(owner) {
          body($0, event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
        }
      }
    }
  }
}

/// Passes a handler's object to a closure.
@inlinable
@inline(__always)
func withOwner<Owner: AnyObject, Result>(
  _ owner: Unmanaged<AnyObject>?, _ body: (Owner) -> Result
) -> Result {
  // Not nil, since the callback needs the owner, which has this class, and is retained during the call.
  owner.unsafelyUnwrapped._withUnsafeGuaranteedRef { body(unsafeDowncast($0, to: Owner.self)) }
}

extension TypedHandler {
  /// A callback of an event thread.
  @inlinable
  convenience init(_ callback: HandlerCallback<E>, _ interest: HandlerInterest<E>) {
    let (call, judge) = (callback.call, callback.judge)
    if let plain = callback.plain, interest.takesAny {
      self.init(plain: plain, conflation: interest.conflation)
      return
    }
    let state = HandlerState(isTimed: callback.isTimed || !interest.takesAny)
    if interest.takesAny {
      self.init(
        state, needsOwner: callback.needsOwner, conflation: interest.conflation, general: call)
      return
    }
    self.init(state, needsOwner: callback.needsOwner, conflation: interest.conflation) {
      event, lane, time, owner in
      guard
        interest.admits(event, lane, time, for: state), judge?(event, lane, time, owner) != false,
        !interest.hasEnded(state)
      else { return false }
      return call(event, lane, time, owner)
    }
  }
}
