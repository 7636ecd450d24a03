// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CSwiftRuntime

  /// Fetches the cache line of an address that will be written soon. The address need not be valid.
  @inline(__always)
  func prefetchForWrite(_ address: UnsafeMutableRawPointer) {
    swift_runtime_prefetch_for_write(address)
  }
#else
  /// Does nothing: Swift has no such instruction, and this build has no C.
  @inline(__always)
  func prefetchForWrite(_ address: UnsafeMutableRawPointer) {}
#endif
