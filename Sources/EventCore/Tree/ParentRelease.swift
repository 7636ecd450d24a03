// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

// The end of a chain of nodes, each of which holds the next: one after the other, and not one
// inside the other, which would need a stack as deep as the chain.

/// The parent that the thread is to let go of next, as seen from the loop in `letGoOfParent`.
private let pendingKey: pthread_key_t = {
  var key = pthread_key_t()
  check(pthread_key_create(&key, nil), "pthread_key_create")
  return key
}()

/// Ends the reference that a child had of its parent, which may end by it. With no lock held.
///
/// A parent that ends calls this in its `deinit` for its own parent, and finds the loop below on
/// its stack: it leaves that one to the loop. There is room for one, which is what a chain needs;
/// whatever else ends inside a user's `deinit` has a loop of its own.
func letGoOfParent(_ context: UnsafeMutableRawPointer) {
  var parent: EventNode? = Unmanaged<EventNode>.fromOpaque(context).takeRetainedValue()
  guard isKnownUniquelyReferenced(&parent) else { return }
  let outer = pthread_getspecific(pendingKey)?
    .assumingMemoryBound(to: Unmanaged<EventNode>?.self)
  if let outer, outer.pointee == nil {
    outer.pointee = Unmanaged.passRetained(parent.unsafelyUnwrapped)
    return
  }
  withUnsafeTemporaryAllocation(of: Unmanaged<EventNode>?.self, capacity: 1) { pending in
    pending.initialize(repeating: nil)
    check(pthread_setspecific(pendingKey, pending.baseAddress), "pthread_setspecific")
    while parent != nil {
      parent = nil
      // What its `deinit` left, if it ended.
      parent = pending[0]?.takeRetainedValue()
      pending[0] = nil
    }
    check(pthread_setspecific(pendingKey, outer), "pthread_setspecific")
  }
}
