// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A registered handler, without what depends on the type of its events, which `TypedHandler` adds.
@usableFromInline
class EventHandler: @unchecked Sendable {
  // Constant. The closures of the subclass are called on the consumer's thread only.

  /// What changes. The user's handle retains it, so it may outlive the handler.
  @usableFromInline let state: HandlerState
  /// Whether the closure is passed its owner, the event thread, which it does not retain.
  @usableFromInline let needsOwner: Bool
  /// Whether the closure takes the event alone, judges none, and has no requester.
  @usableFromInline let isPlain: Bool
  /// The requester of a handler that is plain in all else. While the consumer holds the requester, the
  /// plain closure is called, otherwise the general one. That one retains the registration, and so what
  /// this points to.
  @usableFromInline let requester: UnsafeMutablePointer<RequesterHold>?
  /// Whether the general closure has to see each event.
  @inlinable
  var judges: Bool { !isPlain && requester == nil }
  /// Which of the waiting events it wants. If not all of them, it has a subscription to itself.
  let conflation: Conflation

  @usableFromInline
  init(
    _ state: HandlerState, needsOwner: Bool, isPlain: Bool, conflation: Conflation,
    requester: Unmanaged<SharedReference>? = nil
  ) {
    self.requester = requester?._withUnsafeGuaranteedRef { $0.state }
    self.state = state
    self.needsOwner = needsOwner
    self.isPlain = isPlain
    self.conflation = conflation
  }

  /// Whether the plain closure may be called, of a handler that does not judge: it has no requester, or the
  /// consumer holds the requester and others refer to it, too. The consumer lets go of it only between
  /// events. The consumer's thread only.
  @inlinable
  @inline(__always)
  func mayCallPlain(by consumer: UInt) -> Bool {
    guard let requester else { return true }
    return requester.pointee.isHeld(by: consumer) && !requester.pointee.isLastReference
  }
}

/// A handler for events of one type. It is made and called in inlinable generic code, where the type is
/// known: a call needs no box, no cast, no copy and no allocation.
@usableFromInline
final class TypedHandler<E: Eventable>: EventHandler, @unchecked Sendable {
  /// Calls the user's closure, or returns false if the interest skips the event. `time` is the time of
  /// dispatch if the handler is timed, and `owner` is not nil if the handler needs it.
  @usableFromInline
  typealias General = (
    _ event: E, _ lane: UInt8, _ time: UInt64, _ owner: Unmanaged<AnyObject>?
  ) -> Bool

  // Not optional, since unwrapping a closure retains it for the call: one that is not used does nothing.
  @usableFromInline let plain: (E) -> Void
  @usableFromInline let general: General

  /// A plain handler.
  @inlinable
  init(plain: @escaping (E) -> Void, conflation: Conflation = .none) {
    self.plain = plain
    general = { _, _, _, _ in false }
    super.init(
      HandlerState(isTimed: false), needsOwner: false, isPlain: true, conflation: conflation)
  }

  /// A handler that is plain, except that it has a requester. `general` checks that the requester is alive
  /// and holds it; `general` also retains `requester`.
  @inlinable
  init(
    plain: @escaping (E) -> Void, requester: Unmanaged<SharedReference>, conflation: Conflation,
    general: @escaping General
  ) {
    self.plain = plain
    self.general = general
    super.init(
      HandlerState(isTimed: false), needsOwner: false, isPlain: false, conflation: conflation,
      requester: requester)
  }

  /// Any other handler. `state` is new; `general` may use it.
  @inlinable
  init(
    _ state: HandlerState, needsOwner: Bool = false, conflation: Conflation = .none,
    general: @escaping General
  ) {
    plain = { _ in }
    self.general = general
    super.init(state, needsOwner: needsOwner, isPlain: false, conflation: conflation)
  }
}

/// Whether a handler is alive, and since which generation. The consumer and the user's handle share it.
@usableFromInline
final class HandlerState: @unchecked Sendable {
  // Atomic or constant, except for `index`, which only the consumer's thread uses, and for `clock`, which `begin`
  // sets before others know the handler.

  /// The first generation whose events the handler gets; `.max` before its registration and after its end.
  /// Written by the registering and the removing thread, read by the consumer before each call.
  private let validFrom = Atomic<UInt32>(.max)
  /// Events that the interest skipped. Written by the consumer's thread, read by any.
  private let skipped = Atomic<UInt64>(0)
  /// The index in the receiver's list; nil if it is not there.
  var index: Int?
  /// Whether the handler needs the time of dispatch.
  @usableFromInline let isTimed: Bool

  @usableFromInline
  init(isTimed: Bool) {
    self.isTimed = isTimed
  }

  /// The central's clock, by which events age; nil for the system's.
  private var clock: CentralClock?

  /// Makes the handler valid from a generation on. Once, before that generation is published.
  func begin(at generation: UInt32, by clock: CentralClock?) {
    self.clock = clock
    // Releasing: pairs with `isEnded`.
    validFrom.store(generation, ordering: .releasing)
  }

  /// Ends the handler. True for the first call.
  func end() -> Bool {
    // Sequentially consistent: pairs with `isValid`, in the argument at `HandlerCalls`.
    validFrom.exchange(.max, ordering: .sequentiallyConsistent) != .max
  }

  /// Whether the handler gets an event that was dispatched at a generation.
  func isValid(at generation: UInt32) -> Bool {
    // Sequentially consistent: pairs with `end`. (On ARM an acquiring load could overtake the store of
    // `HandlerCalls.running`; on x86 both are plain loads.)
    validFrom.load(ordering: .sequentiallyConsistent) <= generation
  }

  /// Nanoseconds on the clock of the times of dispatch.
  @usableFromInline
  var now: UInt64 { clock?.now ?? monotonicNanoseconds() }

  @usableFromInline
  var isEnded: Bool { validFrom.load(ordering: .acquiring) == .max }

  /// Counts an event that the interest skipped. The consumer's thread only.
  @usableFromInline
  func skip() {
    // Relaxed: only this thread writes it, and the count publishes nothing.
    skipped.store(skipped.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  var skippedCount: UInt64 { skipped.load(ordering: .relaxed) }

  /// The value of `HandlerCalls.running` during a call of the handler.
  @inlinable
  @inline(__always)
  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }
}
