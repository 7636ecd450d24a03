// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// An object that is made when it is first needed.
///
/// `Synchronization.AtomicLazyReference` does the same, but its `load` runs generic code that is not
/// specialised, which took longer than a whole notification of an observer.
@usableFromInline
package struct LazyReference<Object: AnyObject>: ~Copyable, @unchecked Sendable {
  // The address is atomic. Whether several threads may use the object depends on its class.

  /// The address of a retained object, or 0. Written once.
  @usableFromInline let address = Atomic<UInt>(0)

  package init() {}

  @inlinable
  deinit {
    object(at: address.load(ordering: .acquiring))?.release()
  }

  /// The object; nil if it was never needed.
  @inlinable
  package var value: Object? {
    // Acquiring, pairs with the exchange below: the object is complete.
    object(at: address.load(ordering: .acquiring))?.takeUnretainedValue()
  }

  /// Gives the object to a closure without retaining it; nil if it was never needed.
  @inline(__always)
  func withValue<Result>(_ body: (Object) -> Result) -> Result? {
    // Acquiring, as above.
    object(at: address.load(ordering: .acquiring))?._withUnsafeGuaranteedRef(body)
  }

  /// The object, which is made if there is none. If several threads make one at once, one stays.
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
  @inline(__always)
  func object(at address: UInt) -> Unmanaged<Object>? {
    UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0) }
  }
}
