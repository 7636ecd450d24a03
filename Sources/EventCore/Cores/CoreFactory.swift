// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// Which implementation a central stands on. Both give the same guarantees.
  public enum Core: String, CaseIterable, Sendable {
    /// The C core: lock-free lanes, envelope pools and routes on userspace RCU.
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

    /// Makes a full fence on every thread, so that a consumer needs none of its own in
    /// `Receiver.deliver`. False if the core or the system has no such thing.
    func barrier() -> Bool {
      #if URCU
        self == .lockFree && lockFreeBarrier()
      #else
        false
      #endif
    }

    func makeRouter() -> any RouterCore {
      switch self {
      case .locking:
        return LockingRouter()
      case .lockFree:
        #if URCU
          return LockFreeRouter()
        #else
          lockFreeIsMissing()
        #endif
      }
    }

    /// `clock`: nil for the monotonic clock and a thread of its own.
    func makeScheduler(clock: ManualClock?) -> any SchedulerCore {
      switch self {
      case .locking:
        return LockingScheduler.make(clock: clock)
      case .lockFree:
        #if URCU
          return LockFreeScheduler(clock: clock)
        #else
          lockFreeIsMissing()
        #endif
      }
    }

    /// `pump`: who drives the consumer, if it has no thread of its own.
    func makeMailbox(
      _ consumer: Consumer, _ strategy: EventWaitStrategy, _ pump: ConsumerPump?
    ) -> any MailboxCore {
      switch self {
      case .locking:
        return LockingMailbox(strategy, pump)
      case .lockFree:
        #if URCU
          return LockFreeMailbox(consumer, strategy, pump)
        #else
          lockFreeIsMissing()
        #endif
      }
    }

    func makeBalancer(_ chooser: PoolChooser) -> any BalancerCore {
      switch self {
      case .locking:
        return LockingBalancer(chooser)
      case .lockFree:
        #if URCU
          return LockFreeBalancer(chooser)
        #else
          lockFreeIsMissing()
        #endif
      }
    }

    func makeSharedMailbox() -> any SharedMailboxCore {
      switch self {
      case .locking:
        return LockingSharedMailbox()
      case .lockFree:
        #if URCU
          return LockFreeSharedMailbox()
        #else
          lockFreeIsMissing()
        #endif
      }
    }
  }
}

extension EventCentral.Core {
  /// The trees on this core.
  @usableFromInline
  var trees: any TreeCore.Type {
    switch self {
    case .locking:
      return LockingTree.self
    case .lockFree:
      #if URCU
        return LockFreeTree.self
      #else
        lockFreeIsMissing()
      #endif
    }
  }
}

#if !URCU
  func lockFreeIsMissing() -> Never {
    fatalError(
      """
      A central with the core .lockFree needs the package trait URCU, and this build was made without \
      it: use .locking or EventCentral.Core.default, or build with the trait.
      """)
  }
#endif
