// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The part of a registered callback that does not depend on the type of its events; `TypedHandler`
/// adds the closure. All of it is constant: what changes is in `state`, which outlives it in the
/// user's handle.
@usableFromInline
class EventHandler: @unchecked Sendable {
  // Constant. The closures of the subclass are called on the consumer's thread only.

  @usableFromInline let state: HandlerState
  /// Whether the closure is given the thread it belongs to, which it does not retain.
  @usableFromInline let needsOwner: Bool
  /// Whether the closure takes the event and nothing else, and judges none.
  @usableFromInline let isPlain: Bool
  /// Of a handler that is plain, but for a requester that has to be there: as long as the consumer
  /// holds that, the plain closure is called, otherwise the general one, which holds the
  /// registration, and that the `SharedReference` whose this is.
  @usableFromInline let requester: UnsafeMutablePointer<RequesterHold>?
  /// Whether there is no closure that may be called right away: the general one has to see the
  /// event.
  @inlinable
  var judges: Bool { !isPlain && requester == nil }
  /// Whether of the waiting events only the newest is for this handler, which then has a
  /// subscription of its own.
  let isLatestOnly: Bool

  @usableFromInline
  init(
    _ state: HandlerState, needsOwner: Bool, isPlain: Bool, isLatestOnly: Bool,
    requester: Unmanaged<SharedReference>? = nil
  ) {
    self.requester = requester?._withUnsafeGuaranteedRef { $0.state }
    self.state = state
    self.needsOwner = needsOwner
    self.isPlain = isPlain
    self.isLatestOnly = isLatestOnly
  }

  /// Whether the plain closure may be called, if the general one does not judge: it has no
  /// requester, or the consumer holds that and is not the last to refer to it. The consumer's
  /// thread only. It holds the requester over the call then: it lets go between two events.
  @inlinable
  @inline(__always)
  func mayCallPlain(by consumer: UInt) -> Bool {
    guard let requester else { return true }
    return requester.pointee.isHeld(by: consumer) && !requester.pointee.isLastReference
  }
}

/// A callback for events of one type.
///
/// It is made and called inside inlinable generics, where the type is known: calling it needs no
/// box, no cast, no copy and no allocation.
@usableFromInline
final class TypedHandler<E: Eventable>: EventHandler, @unchecked Sendable {
  /// Calls the user's closure, unless its interest turns the event away; then it returns false.
  /// `time` is that of the dispatch if the handler is timed; `owner` is there if it needs one.
  @usableFromInline
  typealias General = (
    _ event: E, _ lane: UInt8, _ time: UInt64, _ owner: Unmanaged<AnyObject>?
  ) -> Bool

  // One of the two is the user's; not optional, since unwrapping a closure retains it for the call.
  @usableFromInline let plain: (E) -> Void
  @usableFromInline let general: General

  /// A handler that takes the event and nothing beside it, without judging it.
  @inlinable
  init(plain: @escaping (E) -> Void, isLatestOnly: Bool = false) {
    self.plain = plain
    general = { _, _, _, _ in false }
    super.init(
      HandlerState(isTimed: false), needsOwner: false, isPlain: true, isLatestOnly: isLatestOnly)
  }

  /// A handler that takes the event and nothing beside it, without judging it, for as long as a
  /// requester is there. `general` finds out, and holds it; it retains `requester`.
  @inlinable
  init(
    plain: @escaping (E) -> Void, requester: Unmanaged<SharedReference>, isLatestOnly: Bool,
    general: @escaping General
  ) {
    self.plain = plain
    self.general = general
    super.init(
      HandlerState(isTimed: false), needsOwner: false, isPlain: false, isLatestOnly: isLatestOnly,
      requester: requester)
  }

  /// A handler of any kind. `state`: a new one, which `general` may ask.
  @inlinable
  init(
    _ state: HandlerState, needsOwner: Bool = false, isLatestOnly: Bool = false,
    general: @escaping General
  ) {
    plain = { _ in }
    self.general = general
    super.init(state, needsOwner: needsOwner, isPlain: false, isLatestOnly: isLatestOnly)
  }
}

/// Whether a handler is alive, and since when. The consumer and the user's handle share it.
@usableFromInline
final class HandlerState: @unchecked Sendable {
  // Atomic or constant, but for `index`, which is one thread's.

  /// The first generation of its subscription whose events it gets; `.max` before its registration
  /// and after its end. Written by the registering and the removing thread, read by the consumer
  /// before each call.
  private let validFrom = Atomic<UInt32>(.max)
  /// Events that reached the handler and were turned away by its interest. Written by the consumer,
  /// read by anybody.
  private let skipped = Atomic<UInt64>(0)
  /// Its index in its receiver's list. The consumer only.
  var index: Int?
  /// Whether the handler wants the time of dispatch.
  @usableFromInline let isTimed: Bool

  @usableFromInline
  init(isTimed: Bool) {
    self.isTimed = isTimed
  }

  /// Makes the handler count from a generation on. Once, before that generation is published.
  func begin(at generation: UInt32) {
    validFrom.store(generation, ordering: .releasing)
  }

  /// Ends the handler. True for the first call.
  func end() -> Bool {
    // Sequentially consistent: the first half of `HandlerCalls`' "publish, then look".
    validFrom.exchange(.max, ordering: .sequentiallyConsistent) != .max
  }

  /// Whether the handler gets an event that was dispatched at a generation.
  func isValid(at generation: UInt32) -> Bool {
    // Sequentially consistent: the second half of the same. (An acquiring load may overtake the
    // store of `Consumer.running` on ARM.) On x86 both are a plain load.
    validFrom.load(ordering: .sequentiallyConsistent) <= generation
  }

  @usableFromInline
  var isEnded: Bool { validFrom.load(ordering: .acquiring) == .max }

  /// Counts an event that the interest turned away. The consumer only.
  @usableFromInline
  func skip() {
    // Relaxed: only the consumer writes it.
    skipped.store(skipped.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  var skippedCount: UInt64 { skipped.load(ordering: .relaxed) }

  /// What `Consumer.running` holds while the handler is called.
  @inlinable
  @inline(__always)
  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }
}
