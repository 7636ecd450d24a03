// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The object of a `SharedReference` and the consumer that holds it. These fields are read before each call
/// of a handler. They lie together in allocated memory, since Swift checks each access to a stored property
/// of a class for exclusivity.
@usableFromInline
struct RequesterHold: ~Copyable {
  /// The address of the consumer that holds the object over a run, or 0.
  @usableFromInline let holder = Atomic<UInt>(0)
  /// Retained, or nil. Written under the mutex of the reference, and only while nobody holds the object:
  /// consumers that hold it read this without the mutex.
  @usableFromInline var object: UnsafeMutableRawPointer?
  /// Makes most checks a comparison, if the object is held over a run. Written together with `object`.
  @usableFromInline var snapshot: CountSnapshot?

  init() {}

  // Static, and they write field by field: a mutating method would be an exclusive access to all fields,
  // while other threads read `holder`.

  /// Stores the retained object. `isForRun`: the object will be checked many times.
  static func begin(
    _ hold: UnsafeMutablePointer<Self>, _ object: UnsafeMutableRawPointer, isForRun: Bool
  ) {
    hold.pointee.object = object
    if isForRun { hold.pointee.snapshot = CountSnapshot(object) }
  }

  static func end(_ hold: UnsafeMutablePointer<Self>) {
    hold.pointee.object = nil
    hold.pointee.snapshot = nil
  }

  /// Whether the consumer holds the object over a run.
  @inlinable
  @inline(__always)
  func isHeld(by consumer: UInt) -> Bool {
    // Relaxed: only the consumer writes its own address here, and it read the rest in `enter`.
    holder.load(ordering: .relaxed) == consumer
  }

  /// Whether only consumers refer to the object. For consumers that hold it.
  @inlinable
  @inline(__always)
  var isLastReference: Bool {
    if let snapshot, snapshot.isUnchanged { return false }
    return Self.isLastReference(to: object)
  }

  /// Whether an object has one reference, as the runtime says.
  @inlinable
  @inline(__always)
  static func isLastReference(to object: UnsafeMutableRawPointer?) -> Bool {
    // `isKnownUniquelyReferenced` takes an inout reference, and several threads may call this at once: so
    // it gets a copy of the pointer, which retains nothing. The copy is of an optional type, which has the
    // same bits, because passing an `AnyObject` would open it and retain the object. Unprotected, because
    // a stack guard for this one pointer would cost each call as much as the check.
    var object = object
    return _withUnprotectedUnsafeMutablePointer(to: &object) {
      $0.withMemoryRebound(to: AnyObject?.self, capacity: 1) {
        isKnownUniquelyReferenced(&$0.pointee)
      }
    }
  }
}
