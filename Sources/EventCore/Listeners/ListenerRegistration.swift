// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// One listener: the user's handle, and what its handler uses before each call.
///
/// The handler's closure, the user and the `ListenerList` retain it. It retains none of the user's objects;
/// of its requester it keeps the memory (`WeakReference`).
@usableFromInline
final class ListenerRegistration: EventListenerHandling, @unchecked Sendable {
  // Constant, except for `state`, which `register` sets before others know the registration, and for
  // `index`. `progress` has its own lock.

  /// Not retained: the listener ends with it (D9).
  let requester: SharedReference?
  @usableFromInline var unretainedRequester: Unmanaged<SharedReference>? {
    requester.map { Unmanaged.passUnretained($0) }
  }
  @usableFromInline let isOnce: Bool
  let context: ExecutionContext
  private var state: HandlerState!
  private weak let list: ListenerList?

  private struct Progress {
    /// Nil until the consumer has taken the handler.
    var receiver: Receiver?
    /// Whether the listener was removed before that.
    var hasToEnd = false
  }
  private let progress = Guarded(Progress())
  private let hasRun = Atomic<Bool>(false)

  init(_ requester: AnyObject?, isOnce: Bool, _ context: ExecutionContext, _ list: ListenerList) {
    self.requester = requester.map(RequesterTable.reference)
    self.isOnce = isOnce
    self.context = context
    self.list = list
  }

  // MARK: Registering

  /// Hands the handler to the context's consumer. Once, before others know the registration. `isGreeted`: it gets the
  /// newest event first if the central keeps it.
  func register(_ handler: EventHandler, _ type: EventTypeActions, isGreeted: Bool = true) {
    state = handler.state
    let registry: HandlerRegistry = context.consumer.registry
    guard let receiver = isGreeted ? registry.add(handler, type) : registry.subscribe(handler, type) else {
      // The context has ended, and with it the listener.
      context.leave()
      return
    }
    // On the list before it can be removed, since the removal takes it off the list.
    let isListed = list?.add(self) == true
    let hasToEnd = progress.withLock { progress in
      progress.receiver = receiver
      return progress.hasToEnd
    }
    if !isListed {
      remove()
      context.leave()
    } else if hasToEnd {
      remove()
    }
  }

  // MARK: From the handler, on the consumer's thread

  /// The requester, retained for a call; nil if it is gone, and then the listener ends. If it is held for
  /// this call alone, the caller ends the hold by `letGoOfRequester`.
  @usableFromInline
  func holdRequester() -> HeldObject? {
    let consumer = context.consumer
    guard let requester, let held = consumer.hold(requester) else {
      remove()
      return nil
    }
    // Relaxed: this thread writes it. If `hold` has left the handler, it is announced and checked anew
    // (D6).
    if consumer.calls.running.load(ordering: .relaxed) != 0 { return held }
    consumer.calls.willCall(at: state.address)
    if state.isValid(at: .max - 1) { return held }
    if held.isForOneCall { letGoOfRequester() }
    return nil
  }

  /// Ends the hold of the requester, which is not nil, for one call.
  @usableFromInline
  func letGoOfRequester() {
    context.consumer.letGo(requester.unsafelyUnwrapped)
  }

  /// True for the only call of a `once` listener, which this ends.
  @usableFromInline
  func claimOnlyCall() -> Bool {
    // Relaxed: one thread at a time calls the listener. A second event may wait already.
    guard !hasRun.exchange(true, ordering: .relaxed) else { return false }
    remove()
    return true
  }

  // MARK: From the sweep

  /// Whether it was removed; its requester may be gone without that.
  var isEnded: Bool { state.isEnded }

  /// Removes the listener, and gives back its context if it has ended otherwise.
  func endSpent() {
    if !remove() { release() }
  }

  // MARK: The handle

  @usableFromInline
  var isActive: Bool {
    // An actor that is gone calls nothing, though its place ends only when an event finds it so.
    !state.isEnded && context.consumer.canRun && requester?.isGone != true
  }

  @usableFromInline
  var executesOn: EventListenerContext { context.place }

  @usableFromInline
  var waitingEventCount: Int { context.waitingCount }

  @usableFromInline
  var skippedCount: UInt64 { rejectedCount + supersededCount }

  /// The events that the age or the filter did not admit.
  var rejectedCount: UInt64 { state.skippedCount }

  /// Those that newer ones have replaced.
  var supersededCount: UInt64 {
    let receiver = progress.withLock { $0.receiver }
    return receiver.map(context.consumer.registry.supersededCount) ?? 0
  }

  @usableFromInline
  @discardableResult
  func remove() -> Bool {
    let receiver = progress.withLock { progress -> Receiver? in
      if progress.receiver == nil { progress.hasToEnd = true }
      return progress.receiver
    }
    guard let receiver, context.consumer.remove(state, of: receiver) else { return false }
    release()
    return true
  }

  @available(*, noasync)
  @usableFromInline
  @discardableResult
  func removeAndWait() -> Bool {
    let removed = remove()
    context.consumer.waitUntilDone(state)
    return removed
  }

  @usableFromInline
  @discardableResult
  func removed() async -> Bool {
    let removed = remove()
    await context.consumer.untilDone(state)
    return removed
  }

  var call: (consumer: Consumer, handler: HandlerState) { (context.consumer, state) }

  /// Gives the context back, once.
  private func release() {
    // The thread that takes the registration off the list does it.
    if list?.remove(self) == true {
      context.leave()
    }
  }

  /// The index in the `ListenerList`, whose lock guards it.
  var index: Int?
}

extension ListenerRegistration {
  /// Makes the handler of this listener.
  @inlinable
  func handler<E: Eventable>(
    _ callback: HandlerCallback<E>, _ interest: HandlerInterest<E>
  ) -> TypedHandler<E> {
    let (call, judge) = (callback.call, callback.judge)
    let isOnce = isOnce
    let state = HandlerState(isTimed: callback.isTimed || !interest.takesAny)
    let plain = interest.takesAny && !isOnce ? callback.plain : nil
    guard let requester = unretainedRequester else {
      if let plain { return TypedHandler(plain: plain, conflation: interest.conflation) }
      return TypedHandler(state, conflation: interest.conflation) { event, lane, time, _ in
        guard
          interest.admits(event, lane, time, for: state), !interest.hasEnded(state),
          !isOnce || self.claimOnlyCall()
        else { return false }
        return call(event, lane, time, nil)
      }
    }
    let general: TypedHandler<E>.General = { event, lane, time, _ in
      // Retained during the filter, too, which may be a method of the requester.
      guard let held = self.holdRequester() else { return false }
      let wasCalled =
        interest.admits(event, lane, time, for: state) && judge?(event, lane, time, held.object) != false
        && !interest.hasEnded(state) && (!isOnce || self.claimOnlyCall())
        && call(event, lane, time, held.object)
      if held.isForOneCall { self.letGoOfRequester() }
      return wasCalled
    }
    guard let plain else {
      return TypedHandler(state, conflation: interest.conflation, general: general)
    }
    return TypedHandler(
      plain: plain, requester: requester, conflation: interest.conflation, general: general)
  }
}
