// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// One registered callback: the typed closure behind a raw pointer.
///
/// The closure is built inside an inlinable generic, where the event's type is known, so that calling it
/// needs no box, no cast and no allocation. The class itself is not generic, and all of it is constant:
/// what changes is in `state`, which outlives it in the user's handle.
@usableFromInline
final class EventHandler: @unchecked Sendable {
  // Constant. `body` is called on the consumer's thread only.

  /// Calls the user's closure. The payload is moved out if `take` is true, and left alone otherwise.
  @usableFromInline
  typealias Body = (
    _ payload: UnsafeMutableRawPointer, _ lane: UInt8, _ time: UInt64,
    _ owner: Unmanaged<EventThread>?, _ take: Bool
  ) -> Void

  let body: Body
  /// Whether the closure is given the thread it belongs to, which it does not retain.
  let needsOwner: Bool
  let state: HandlerState

  /// `isTimed`: whether the closure wants the time of dispatch.
  @usableFromInline
  init(isTimed: Bool, needsOwner: Bool, body: @escaping Body) {
    state = HandlerState(isTimed: isTimed)
    self.needsOwner = needsOwner
    self.body = body
  }
}

/// Whether a handler is alive, and since when. The consumer and the user's handle share it.
final class HandlerState: Sendable {
  /// The first generation of its subscription whose events it gets; `.max` before its registration and
  /// after its end. Written by the registering and the removing thread, read by the consumer before
  /// each call.
  private let validFrom = Atomic<UInt32>(.max)
  /// Whether the handler wants the time of dispatch.
  let isTimed: Bool

  init(isTimed: Bool) {
    self.isTimed = isTimed
  }

  /// Makes the handler count from a generation on. Once, before that generation is published.
  func begin(at generation: UInt32) {
    validFrom.store(generation, ordering: .releasing)
  }

  /// Ends the handler. True for the first call.
  func end() -> Bool {
    // Sequentially consistent: the first half of `Consumer.waitUntilDone`'s "publish, then look".
    validFrom.exchange(.max, ordering: .sequentiallyConsistent) != .max
  }

  /// Whether the handler gets an event that was dispatched at a generation.
  @inline(__always)
  func isValid(at generation: UInt32) -> Bool {
    // Sequentially consistent: the second half of the same. (An acquiring load may overtake the store
    // of `Consumer.running` on ARM.) On x86 both are a plain load.
    validFrom.load(ordering: .sequentiallyConsistent) <= generation
  }

  var isEnded: Bool { validFrom.load(ordering: .acquiring) == .max }

  /// What `Consumer.running` holds while the handler is called.
  @inline(__always)
  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }
}
