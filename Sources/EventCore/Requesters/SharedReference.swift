// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A weak reference to a requester, which a consumer makes strong for a run of events, since retaining and
/// releasing the object for every call costs several times the call.
///
/// All handlers of one object share this reference. All consumers hold the object by the one strong
/// reference in here, and count how many of them do. So each of them can see whether anybody else refers to
/// the object: before each call it checks whether the strong reference in here is the last. If it is, the
/// object counts as gone: its handlers are not called any more, and it ends when the last consumer lets go
/// of it (D9).
///
/// A running call may retain the object, too, and the check cannot tell these references from a user's:
/// while the calls of several consumers overlap without a gap, each check finds such references. So when
/// calls have overlapped for some time, all consumers pause between two calls until nobody holds the
/// object, which ends it if no user refers to it. A pause has a deadline, since the running handler may be
/// waiting for an event that a pausing consumer has to handle (`Overlap`).
///
/// One consumer at a time, the holder, holds the object over a run: until its mailbox is empty, its pump
/// returns, or some hundred events have passed. Meanwhile it may call handlers of other objects, which take
/// any time; that is why the hold itself must not count as a reference that keeps handlers callable. All
/// other consumers hold the object over one call, as does every consumer if it is `ActiveByItself`.
@usableFromInline
final class SharedReference: @unchecked Sendable {
  // `weakObject`, `identifier`, `isHeldOverRuns` and the pointer `state` are constant.

  let identifier: ObjectIdentifier
  private let weakObject: WeakReference
  private let isHeldOverRuns: Bool
  /// What handlers check before each call. They retain this reference, and with it the memory.
  @usableFromInline let state: UnsafeMutablePointer<RequesterHold>
  private struct Holds {
    /// How many consumers hold the object: the holder, and those that hold it over one call.
    var count = 0
    var overlap = Overlap()
  }
  private let holds = Guarded(Holds())
  /// Where consumers sleep during a pause: one for all references, since pauses are rare. Locked before
  /// `holds`.
  private static let pauses = Monitor()
  /// Whether a consumer has found the object gone. This is final, even if a weak reference of the user's
  /// makes the object strong again: once one handler of it was not called for this reason, none is.
  private let hasEnded = Atomic<Bool>(false)
  /// The position of this reference in the holder's list (`Consumer.Held`). Relaxed: the holder reads what it
  /// wrote, and another consumer finds a different reference, or none, at that position of its own list.
  let index = Atomic<Int>(0)

  init(_ object: AnyObject) {
    identifier = ObjectIdentifier(object)
    weakObject = WeakReference(object)
    isHeldOverRuns = !(object is any ActiveByItself)
    state = .allocate(capacity: 1)
    state.initialize(to: RequesterHold())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
    RequesterTable.forget(identifier)
  }

  /// Whether the object has ended, or only consumers refer to it. Any thread, with no lock held, since
  /// this call may be the one that releases the last reference.
  var isGone: Bool {
    // Acquiring, pairs with `end`. Only a shortcut: the check below would find the same.
    if hasEnded.load(ordering: .acquiring) { return true }
    guard holds.withLock({ join(&$0, isForRun: false) }) else { return true }
    defer { leave() }
    return held == nil
  }

  /// Whether this refers to `object`, and not to an earlier object at the same address. Any thread.
  func refers(to object: AnyObject) -> Bool {
    // Under the mutex: the caller holds `object` strongly, so that either a later check sees its reference,
    // or this call sees the `end` of an earlier check.
    holds.withLock { _ in
      !hasEnded.load(ordering: .acquiring) && weakObject.refers(to: object)
    }
  }

  // MARK: Counting, any thread

  /// The answer to a consumer that wants to call a handler of the object.
  enum Entry {
    /// The consumer holds the object over a run, until `letGo`.
    case heldOverRun
    /// The consumer holds the object over one call, until `leave`.
    case heldOverCall
    case gone
    /// The consumer has to pause and then to enter again.
    case pause(until: UInt64)
  }

  /// Makes a consumer hold the object for a call: over a run, if there is no holder. The consumer does not
  /// hold the object yet.
  func enter(by consumer: UInt) -> Entry {
    holds.withLock { holds in
      if holds.count > 0, !hasEnded.load(ordering: .acquiring), let deadline = holds.overlap.addCall() {
        askHolder()
        return .pause(until: deadline)
      }
      let isForRun = isHeldOverRuns && state.pointee.holder.load(ordering: .relaxed) == 0
      guard join(&holds, isForRun: isForRun) else { return .gone }
      // Relaxed: the mutex orders the object, and nobody else becomes the holder under it.
      if isForRun { state.pointee.holder.store(consumer, ordering: .relaxed) }
      return isForRun ? .heldOverRun : .heldOverCall
    }
  }

  /// Counts one more consumer that holds the object. False if the object is gone. Under the mutex.
  private func join(_ holds: inout Holds, isForRun: Bool) -> Bool {
    // Acquiring: as in `isGone`.
    guard !hasEnded.load(ordering: .acquiring) else { return false }
    if holds.count == 0 {
      guard let object = weakObject.retained() else { return false }
      RequesterHold.begin(state, object.toOpaque(), isForRun: isForRun)
    }
    holds.count += 1
    return true
  }

  /// Sleeps until nobody holds the object, or until the deadline.
  func pause(until deadline: UInt64) {
    Self.pauses.lock()
    defer { Self.pauses.unlock() }
    while holds.withLock({ $0.overlap.pauseEnd == deadline }) {
      if Self.pauses.wait(until: deadline) { continue }
      holds.withLock { holds in
        if holds.overlap.pauseEnd == deadline { holds.overlap = Overlap() }
      }
      Self.pauses.wakeAll()
    }
  }

  /// A consumer lets go. This may end the object, whose `deinit` is user code: with no lock held, and
  /// outside of a call.
  func leave() {
    let (last, endsPause) = holds.withLock { holds -> (Unmanaged<AnyObject>?, Bool) in
      holds.count -= 1
      guard holds.count == 0 else { return (nil, false) }
      defer {
        RequesterHold.end(state)
        holds.overlap = Overlap()
      }
      return (object, holds.overlap.pauseEnd != nil)
    }
    last?.release()
    guard endsPause else { return }
    Self.pauses.lock()
    Self.pauses.wakeAll()
    Self.pauses.unlock()
  }

  /// Retained by `join`. For consumers that hold it, or under the mutex.
  private var object: Unmanaged<AnyObject>? { state.pointee.object.map { .fromOpaque($0) } }

  /// Whether only consumers refer to the object. For consumers that hold it.
  private var isLastReference: Bool { state.pointee.isLastReference }

  /// The object; nil once the reference in here was found to be the last. For consumers that hold it.
  var held: Unmanaged<AnyObject>? {
    // Acquiring: as in `isGone`.
    guard isLastReference else { return hasEnded.load(ordering: .acquiring) ? nil : object }
    // The check is repeated under the mutex, together with `end`: between the two a weak reference of the
    // user's could make the object strong, and a listener could be registered for it (`refers`).
    let isGone = holds.withLock { _ in
      guard isLastReference else { return false }
      end()
      return true
    }
    return isGone ? nil : object
  }

  /// The object was found gone. Under the mutex, by a consumer that holds the object.
  private func end() {
    // Releasing, pairs with the acquiring loads of `hasEnded`.
    hasEnded.store(true, ordering: .releasing)
    // Without this mark the holder calls `Consumer.hold` before its next call, which finds `hasEnded` set.
    // Releasing, for that. It makes no difference if a consumer has become the holder just now: the object
    // is gone for that one, too.
    state.pointee.holder.store(0, ordering: .releasing)
  }

  // MARK: A consumer's thread

  func isHeld(by consumer: UInt) -> Bool { state.pointee.isHeld(by: consumer) }

  /// The consumer that became the holder lets go, as `leave`.
  func letGo(by consumer: UInt) {
    let holder = state.pointee.holder.compareExchange(
      expected: consumer, desired: 0, ordering: .relaxed)
    // Not a store: after `end` there is no holder. Relaxed: nothing is published by it.
    if !holder.exchanged {
      _ = state.pointee.holder.compareExchange(
        expected: Self.askedToLetGo, desired: 0, ordering: .relaxed)
    }
    leave()
  }

  /// The value of `holder` while the holder is asked to let go before its next call. Until it does, no other
  /// consumer becomes the holder.
  private static var askedToLetGo: UInt { 1 }

  /// Makes the holder call `Consumer.hold` before its next call. Under the mutex.
  private func askHolder() {
    let holder = state.pointee.holder.load(ordering: .relaxed)
    guard holder > Self.askedToLetGo else { return }
    // Fails if the holder lets go at this moment. Relaxed: the holder reads the pause under the mutex.
    _ = state.pointee.holder.compareExchange(
      expected: holder, desired: Self.askedToLetGo, ordering: .relaxed)
  }
}

/// Decides when consumers have to pause because their calls of one object's handlers overlap without a gap.
/// Under the mutex of the reference.
///
/// A pause begins after 64 calls of consumers that do not hold the object over a run, and not before the
/// calls have overlapped for 2 ms. It ends when the running calls have ended, and at the latest after half of
/// the time that the calls overlapped, or 5 ms: events that wait meanwhile are late by that. Then counting
/// starts again. If no user refers to the object, it ends in the first pause whose calls end in time.
/// Otherwise the consumers lose some 2 % of their time if the calls are of one length (three places, 1,000
/// calls of 0.17 ms in each: 177 to 179 ms, and 174 to 175 without pauses), and a third if one of the calls
/// never returns in time.
struct Overlap {
  /// How many calls pass between two readings of the clock.
  private static var calls: UInt32 { 32 }
  /// In nanoseconds.
  private static var shortestOverlap: UInt64 { 2_000_000 }
  private static var longestPause: UInt64 { 5_000_000 }

  private var count: UInt32 = 0
  /// When `calls` had passed.
  private var start: UInt64 = 0
  /// Until when a caller is to pause, in nanoseconds of the monotonic clock; nil if there is no pause.
  private(set) var pauseEnd: UInt64?

  /// Counts a call that begins while other calls may be running. Returns `pauseEnd`.
  mutating func addCall() -> UInt64? {
    if pauseEnd != nil { return pauseEnd }
    count += 1
    guard count.isMultiple(of: Self.calls) else { return nil }
    let now = monotonicNanoseconds()
    if count == Self.calls { start = now }
    let overlap = now - start
    if overlap >= Self.shortestOverlap { pauseEnd = now + min(overlap / 2, Self.longestPause) }
    return pauseEnd
  }
}

/// An object that has handlers itself, as an event thread, or ends handlers with itself, as a scope: they are
/// called as long as it lives. Consumers hold it over single calls only, so that its end does not wait for a
/// consumer that has called one of its listeners.
protocol ActiveByItself: AnyObject {}

/// An object for the duration of a call.
@usableFromInline
struct HeldObject {
  @usableFromInline let object: Unmanaged<AnyObject>
  /// Whether it is held for this call alone.
  @usableFromInline let isForOneCall: Bool

  @usableFromInline
  init(object: Unmanaged<AnyObject>, isForOneCall: Bool) {
    self.object = object
    self.isForOneCall = isForOneCall
  }
}
