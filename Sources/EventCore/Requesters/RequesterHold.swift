// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Who holds the object of a `SharedReference`, and the object: what is looked at before each call
/// of its handlers, side by side and in memory of its own, since what a class declares is checked
/// at each access.
@usableFromInline
struct RequesterHold: ~Copyable {
  /// The address of the consumer that holds the object over a run; 0 = nobody.
  @usableFromInline let holder = Atomic<UInt>(0)
  /// Retained while it is there. Written under the reference's mutex, and only while nobody holds
  /// the object: those who do read it without.
  @usableFromInline var object: UnsafeMutableRawPointer?
  /// What makes most looks short; of an object that is held over a run. Written with `object`.
  @usableFromInline var snapshot: CountSnapshot?

  init() {}

  // Of what a pointer points to, field by field: a mutating method would be an access to all of it,
  // while others read `holder`.

  /// The object is there, retained. `isForRun`: many looks are to come.
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
    // Relaxed: only the consumer itself writes its own address. What it reads then it has from
    // `enter`.
    holder.load(ordering: .relaxed) == consumer
  }

  /// Whether nobody but consumers refers to the object. For those who hold it.
  @inlinable
  @inline(__always)
  var isLastReference: Bool {
    if let snapshot, snapshot.isUnchanged { return false }
    return Self.isLastReference(to: object)
  }

  /// The same of any object, as the runtime says.
  @inlinable
  @inline(__always)
  static func isLastReference(to object: UnsafeMutableRawPointer?) -> Bool {
    // A copy of the pointer alone, which retains nothing: several may look at once, and what
    // `isKnownUniquelyReferenced` is given it is given to change. As an optional, which has the
    // same bits: an `AnyObject` would be opened for the call, and retained by that. Unprotected:
    // what is written to the stack is this pointer, and a guard around it would cost each call as
    // much as the look.
    var object = object
    return _withUnprotectedUnsafeMutablePointer(to: &object) {
      $0.withMemoryRebound(to: AnyObject?.self, capacity: 1) {
        isKnownUniquelyReferenced(&$0.pointee)
      }
    }
  }
}
