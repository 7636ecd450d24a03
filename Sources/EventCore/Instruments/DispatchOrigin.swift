// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore
#endif

/// On whose behalf the calling thread dispatches, as the C core has to know, which counts for observers by itself. The
/// locking core asks each time, and needs none of this.
enum DispatchOrigin {
  /// Says whose handlers the thread runs, by the number of the receiver's probe; 0 for nobody's. It holds for the
  /// dispatches to all centrals. Returns who it was before.
  @inline(__always)
  static func set(_ number: UInt64) -> UInt64 {
    #if URCU
      evc_thread_set_origin(number)
    #else
      0
    #endif
  }

  /// Has the thread forget where it counts, before that memory goes.
  static func forgetTallies() {
    #if URCU
      evc_thread_forget_tallies()
    #endif
  }
}
