// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

#if URCU && !canImport(ObjectiveC)
  internal import CSwiftRuntime
#endif

/// The reference counts of an object at a moment when somebody besides the consumers referred to it. As long
/// as the counts are the same, somebody still does.
///
/// Before each call of a handler this comparison replaces a call of the runtime. It does not interpret the
/// bits. It relies on two facts: the counts of a native object are in the word after its type (HeapObject.h
/// in the runtime); and that word holds nothing else, unless the runtime has moved the counts to a side
/// table. Then the word refers to the table for good, and no longer changes when references are counted.
/// The initialiser detects that: it adds a reference and takes it away again, which changes the word and
/// changes it back only if the word has the counts.
@usableFromInline
struct CountSnapshot {
  // Constant. `word` points into the object, which everybody who uses the snapshot keeps alive.

  @usableFromInline let word: UnsafePointer<Atomic<UInt64>>
  @usableFromInline let counts: UInt64

  /// Whether the counts are the same. Relaxed, as the runtime's own look at them: nothing else is read
  /// because of the result, and releasing the object synchronizes by itself.
  @inlinable
  @inline(__always)
  var isUnchanged: Bool { word.pointee.load(ordering: .relaxed) == counts }

  /// Nil if the word does not have the counts, or if nobody but the caller refers to the object. Any
  /// thread.
  ///
  /// - Parameters:
  ///   - object: A class instance, which the caller keeps alive.
  ///   - retain: Adds a reference. A test passes a function of its own, to act at that moment.
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
    // If the counts move to a table meanwhile, the first and the third value differ; if they move later,
    // the word then differs from `counts`. They never move back.
    guard oneMore != before, counts == before, !Self.areOfLastReference(counts) else { return nil }
  }

  /// Whether an object with these counts has one reference, as the runtime says. The object itself is not
  /// asked, since its counts may have changed since they were read.
  private static func areOfLastReference(_ counts: UInt64) -> Bool {
    // The beginning of an object. The runtime does not look at the type.
    var image = (type: UInt64(0), counts: counts)
    return withUnsafeMutableBytes(of: &image) { RequesterHold.isLastReference(to: $0.baseAddress) }
  }

  #if URCU && !canImport(ObjectiveC) && _pointerBitWidth(_64)
    static var isSupported: Bool { true }

    /// Calls C, since the compiler would remove a retain that is followed by a release.
    private static func retain(_ object: UnsafeMutableRawPointer) -> Bool {
      swift_runtime_try_retain(object)
    }
  #else
    /// Not on Apple's systems, where the object may be an Objective-C object, which counts differently.
    static var isSupported: Bool { false }

    private static func retain(_ object: UnsafeMutableRawPointer) -> Bool { false }
  #endif
}
