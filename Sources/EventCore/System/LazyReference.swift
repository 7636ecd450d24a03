// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// An object that is made when it is first needed.
///
/// `Synchronization.AtomicLazyReference` does the same; its `load` goes through generic code that
/// is not specialised, and took longer than a whole notification of an observer.
@usableFromInline
package struct LazyReference<Object: AnyObject>: ~Copyable, @unchecked Sendable {
  // What the object allows to several threads is its own affair; its address is atomic.
  /// The address of a retained object, or 0. Written once.
  @usableFromInline let address = Atomic<UInt>(0)

  package init() {}

  @inlinable
  deinit {
    object(at: address.load(ordering: .acquiring))?.release()
  }

  /// Nil if it has never been needed.
  @inlinable
  package var value: Object? {
    // Pairs with the release below: whoever finds the object finds it whole.
    object(at: address.load(ordering: .acquiring))?.takeUnretainedValue()
  }

  /// The object, made if it is not there. Of several that are made at once one stays.
  package func value(or make: () -> Object) -> Object {
    if let value { return value }
    let new = Unmanaged.passRetained(make())
    let (isFirst, found) = address.compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard isFirst else {
      new.release()
      return object(at: found)!.takeUnretainedValue()
    }
    return new.takeUnretainedValue()
  }

  @inlinable
  func object(at address: UInt) -> Unmanaged<Object>? {
    UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0) }
  }
}
