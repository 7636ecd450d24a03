// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// Which implementation a central stands on. Both give the same guarantees.
  public enum Core: String, CaseIterable, Sendable {
    /// The C core: lock-free lanes, slab pools of envelopes and routes on userspace RCU.
    case lockFree
    /// Pure Swift: mutexes and buffers. What remains when the package trait `URCU` is off.
    case locking

    /// The cores that this build contains.
    public static var available: [Core] {
      #if URCU
        [.lockFree, .locking]
      #else
        [.locking]
      #endif
    }

    /// The fastest of the available cores.
    public static var `default`: Core { available[0] }

    /// Says whose handlers the calling thread runs, by the number of their probe, 0 for nobody's; for the dispatches to
    /// all centrals, whichever core they have. Returns who it was before. The C core counts by it; the locking one asks
    /// each time.
    @inline(__always)
    func setOrigin(_ origin: UInt64) -> UInt64 {
      #if URCU
        CoreParts.setOrigin(origin)
      #else
        0
      #endif
    }

    /// Frees what the C core has retired, if loops are all that would, whichever central they are of. At the beginning
    /// of their runs.
    static func reclaim() {
      #if URCU
        LockFreeReclaimer.reclaim()
      #endif
    }

    /// Has the calling thread forget where it counts, before that memory goes.
    func forgetTallies() {
      #if URCU
        CoreParts.forgetTallies()
      #endif
    }

    /// How this core's implementation of each seam is made.
    var parts: CoreParts {
      switch self {
      case .locking: return .locking
      case .lockFree:
        #if URCU
          return .lockFree
        #else
          fatalError(
            """
            A central with the core .lockFree needs the package trait URCU, and this build was made without \
            it: use .locking or EventCentral.Core.default, or build with the trait.
            """)
        #endif
      }
    }
  }
}

/// A core, as the module sees it: what makes the implementation of each seam.
struct CoreParts: Sendable {
  /// Runs a full memory fence on every thread of the process, so that a consumer needs none of its own
  /// before each call of a handler. False if the core or the system has no such fence.
  let barrier: @Sendable () -> Bool
  /// Makes memory for so many events that the calling thread will dispatch.
  let reserve: @Sendable (Int) -> Void
  /// With the clock that events bear the time of; nil for the system's.
  let makeRouter: @Sendable (CentralClock?) -> any RouterCore
  /// The pump drives the consumer, if it has no thread of its own.
  let makeMailbox: @Sendable (Consumer, EventWaitStrategy, EventMailboxCapacity, ConsumerPump?) -> any MailboxCore
  let makeSharedMailbox: @Sendable (EventMailboxCapacity) -> any SharedMailboxCore
  let makeBalancer: @Sendable (PoolChooser) -> any BalancerCore
  /// False for the system's clock and a thread; true if the owner calls `runDue`.
  let makeScheduler: @Sendable (Bool) -> any SchedulerCore
  let trees: any TreeCore.Type

  fileprivate static let locking = CoreParts(
    barrier: { false },
    // An event lies in its receiver's lanes, which grow with the first backlog.
    reserve: { _ in },
    makeRouter: { LockingRouter($0) },
    makeMailbox: { LockingMailbox($1, $2, $3) },
    makeSharedMailbox: { LockingSharedMailbox($0) },
    makeBalancer: { LockingBalancer($0) },
    makeScheduler: { LockingScheduler(isDriven: $0) },
    trees: LockingTree.self)
}
