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

    /// What this core consists of.
    var parts: any CoreParts.Type {
      switch self {
      case .locking: return LockingParts.self
      case .lockFree:
        #if URCU
          return LockFreeParts.self
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

/// A core, as the module sees it: how it makes the implementation of each seam.
protocol CoreParts {
  /// Runs a full memory fence on every thread of the process, so that a consumer needs none of its own
  /// before each call of a handler. False if the core or the system has no such fence.
  static func barrier() -> Bool

  static func makeRouter() -> any RouterCore

  /// - Parameter pump: Who drives the consumer, if it has no thread of its own.
  static func makeMailbox(
    _ consumer: Consumer, _ strategy: EventWaitStrategy, _ pump: ConsumerPump?
  ) -> any MailboxCore

  static func makeSharedMailbox() -> any SharedMailboxCore
  static func makeBalancer(_ chooser: PoolChooser) -> any BalancerCore

  /// - Parameter clock: Nil for the monotonic clock and a thread of its own.
  static func makeScheduler(clock: ManualClock?) -> any SchedulerCore

  static var trees: any TreeCore.Type { get }
}

private enum LockingParts: CoreParts {
  static func barrier() -> Bool { false }
  static func makeRouter() -> any RouterCore { LockingRouter() }

  static func makeMailbox(
    _ consumer: Consumer, _ strategy: EventWaitStrategy, _ pump: ConsumerPump?
  ) -> any MailboxCore { LockingMailbox(strategy, pump) }

  static func makeSharedMailbox() -> any SharedMailboxCore { LockingSharedMailbox() }
  static func makeBalancer(_ chooser: PoolChooser) -> any BalancerCore { LockingBalancer(chooser) }

  static func makeScheduler(clock: ManualClock?) -> any SchedulerCore {
    LockingScheduler.make(clock: clock)
  }

  static var trees: any TreeCore.Type { LockingTree.self }
}

#if URCU
  private enum LockFreeParts: CoreParts {
    static func barrier() -> Bool { lockFreeBarrier() }
    static func makeRouter() -> any RouterCore { LockFreeRouter() }

    static func makeMailbox(
      _ consumer: Consumer, _ strategy: EventWaitStrategy, _ pump: ConsumerPump?
    ) -> any MailboxCore { LockFreeMailbox(consumer, strategy, pump) }

    static func makeSharedMailbox() -> any SharedMailboxCore { LockFreeSharedMailbox() }
    static func makeBalancer(_ chooser: PoolChooser) -> any BalancerCore { LockFreeBalancer(chooser) }

    static func makeScheduler(clock: ManualClock?) -> any SchedulerCore {
      LockFreeScheduler(clock: clock)
    }

    static var trees: any TreeCore.Type { LockFreeTree.self }
  }
#endif
