// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  extension CoreParts {
    static let lockFree = CoreParts(
      barrier: { evc_barrier_everywhere() },
      reserve: { requireCore(evc_reserve(UInt32(clamping: $0)), "reserve memory for events") },
      makeRouter: { LockFreeRouter($0) },
      makeMailbox: { LockFreeMailbox($0, $1, $2, $3) },
      makeSharedMailbox: { LockFreeSharedMailbox($0) },
      makeBalancer: { LockFreeBalancer($0) },
      makeScheduler: { LockFreeScheduler(isDriven: $0) },
      trees: LockFreeTree.self)

    /// Says whose handlers the calling thread runs. Returns who it was before.
    static func setOrigin(_ origin: UInt64) -> UInt64 { evc_thread_set_origin(origin) }
    /// Has the calling thread tell observers of its next dispatches.
    static func forgetTallies() { evc_thread_forget_tallies() }
  }
#endif
