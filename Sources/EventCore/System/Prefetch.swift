// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CSwiftRuntime

  /// Asks the processor for the line of an address, to be written soon. The address may be anything.
  @inline(__always)
  func prefetchForWrite(_ address: UnsafeMutableRawPointer) {
    swift_runtime_prefetch_for_write(address)
  }
#else
  /// Nothing: the language has no word for it, and this build no C.
  @inline(__always)
  func prefetchForWrite(_ address: UnsafeMutableRawPointer) {}
#endif
