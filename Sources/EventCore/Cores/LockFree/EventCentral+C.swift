// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A central that C and Swift share: a C library dispatches and subscribes by the functions of `eventcore/router.h`.
///
/// Import the library's structure, say that it is an event, and hand router and key to the library:
///
/// ```swift
/// extension reading: @retroactive Eventable {}
/// sensors_start(central.cRouter, EventCentral.cKey(of: reading.self))
/// ```
extension EventCentral {
  /// The router of the C core (`struct evc_router *`), for a C library that is part of the same process and uses the
  /// same copy of the core; nil if this central's core is ``Core/locking``, which C does not know, or if
  /// the central carries the contexts of traces, which C does not write.
  ///
  /// Its keys are those of ``cKey(of:)`` alone: a library that has keys of its own makes a router for them. What C
  /// subscribes it unsubscribes before the central ends. A thread of the core's frees from then on, so C need not
  /// call `evc_reclaim`, and never calls `evc_router_destroy` or `evc_shutdown`.
  ///
  /// **Threads**: any. **Ownership**: the central's, as long as the program holds it.
  public var cRouter: OpaquePointer? {
    #if URCU
      guard let router = router as? LockFreeRouter else { return nil }
      // The consumers of C are unknown here.
      LockFreeReclaimer.startThread()
      return router.router
    #else
      nil
    #endif
  }

  /// The key under which C dispatches and subscribes to the events of a type, with `sizeof` and `_Alignof` of its
  /// structure. Only types without references: C copies bytes, and ends nothing.
  ///
  /// **Threads**: any. The key is the same as long as the process lives.
  public static func cKey<E: Eventable & BitwiseCopyable>(of type: E.Type) -> UInt64 {
    UInt64(eventKey(type))
  }
}
