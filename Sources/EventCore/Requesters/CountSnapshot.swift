// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

#if URCU && !canImport(ObjectiveC)
  internal import CSwiftRuntime
#endif

/// What an object's counts were when others than its holder referred to it: as long as they are the
/// same, others do.
///
/// To ask the runtime is a call, before each call of a handler; this is a comparison. It reads
/// nothing into the bits. It takes two things for granted: that the counts of a native object are
/// the word behind its type (HeapObject.h in the runtime), and that they are all of it unless they
/// have been moved to a table beside the object, after which the word is the table's for good, and
/// stays the same whatever is counted. That one is told apart by counting: the word of an object
/// that has its counts changes with one reference more, and is what it was with one less.
@usableFromInline
struct CountSnapshot {
  // Constant. In memory of the object's, which whoever holds the snapshot holds.

  @usableFromInline let word: UnsafePointer<Atomic<UInt64>>
  @usableFromInline let counts: UInt64

  /// Whether the counts are what they were. Relaxed, as the runtime's own look: who finds that
  /// nobody else refers to the object any more learns the rest by ending it.
  @inlinable
  @inline(__always)
  var isUnchanged: Bool { word.pointee.load(ordering: .relaxed) == counts }

  /// Nil if the object's word does not count, or nobody but the caller referred to it. Any thread.
  ///
  /// - Parameters:
  ///   - object: Of a class; held by the caller.
  ///   - retain: Adds a reference. Another's is for tests, to which this is the only way in between.
  init?(
    _ object: UnsafeMutableRawPointer, retain: (UnsafeMutableRawPointer) -> Bool = Self.retain
  ) {
    word = UnsafeRawPointer(object).advanced(by: MemoryLayout<UnsafeRawPointer>.size)
      .assumingMemoryBound(to: Atomic<UInt64>.self)
    guard Self.isSupported else { return nil }
    let before = word.pointee.load(ordering: .relaxed)
    guard retain(object) else { return nil }
    let oneMore = word.pointee.load(ordering: .relaxed)
    Unmanaged<AnyObject>.fromOpaque(object).release()
    counts = word.pointee.load(ordering: .relaxed)
    // If a table came in between, the first and the third differ; if it comes later, what is there
    // then differs from `counts`. It never goes.
    guard oneMore != before, counts == before, !Self.areOfLastReference(counts) else { return nil }
  }

  /// What the runtime says of an object with these counts. Not of the object itself: between the
  /// load of its counts and the question it might have others, for a moment.
  private static func areOfLastReference(_ counts: UInt64) -> Bool {
    // As an object begins; its type is not looked at.
    var image = (type: UInt64(0), counts: counts)
    return withUnsafeMutableBytes(of: &image) { RequesterHold.isLastReference(to: $0.baseAddress) }
  }

  #if URCU && !canImport(ObjectiveC) && _pointerBitWidth(_64)
    static var isSupported: Bool { true }

    /// In C: the compiler takes away a reference that is added and taken off again.
    private static func retain(_ object: UnsafeMutableRawPointer) -> Bool {
      swift_runtime_try_retain(object)
    }
  #else
    /// On Apple's systems the object may be of Objective-C, whose counts are not Swift's.
    static var isSupported: Bool { false }

    private static func retain(_ object: UnsafeMutableRawPointer) -> Bool { false }
  #endif
}
