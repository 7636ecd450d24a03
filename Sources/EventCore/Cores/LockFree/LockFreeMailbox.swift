// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  /// The mailbox of the C core, owned by this object; of a worker, its own mailbox and the worker
  /// itself.
  final class LockFreeMailbox: MailboxCore, LockFreeMailboxBase, @unchecked Sendable {
    // The pointers are constant; which function may be called from where is the seam's contract.
    private let mailbox: OpaquePointer
    private let worker: OpaquePointer?
    private let isDrivenByLoop: Bool
    private let isPumped: Bool

    /// - Parameters:
    ///   - capacity: How many events may wait.
    ///   - pump: Who drives the consumer, if it has no thread of its own.
    ///   - shared: The shared mailbox that the consumer is a worker of, held until `admit`, if any.
    init(
      _ consumer: Consumer, _ strategy: EventWaitStrategy, _ capacity: EventMailboxCapacity = .unbounded,
      _ pump: ConsumerPump? = nil,
      workerOf shared: OpaquePointer? = nil
    ) {
      isDrivenByLoop = consumer.isDrivenByLoop
      isPumped = pump != nil
      LockFreeReclaimer.add(consumer)
      var options = evc_mailbox_options()
      options.size = MemoryLayout.size(ofValue: options)
      switch strategy {
      case .park: options.strategy = EVC_WAIT_PARK
      case .spinThenPark: options.strategy = EVC_WAIT_SPIN_THEN_PARK
      case .yield: options.strategy = EVC_WAIT_YIELD
      case .spin: options.strategy = EVC_WAIT_SPIN
      }
      options.spin_ns = strategy.spinNanoseconds ?? 0
      if let pump {
        // Retained until the core frees the mailbox: whoever posts may be on its way to `wake` when
        // nobody else knows the mailbox any more.
        options.context = Unmanaged.passRetained(pump).toOpaque()
        options.wake = {
          Unmanaged<ConsumerPump>.fromOpaque($0!)._withUnsafeGuaranteedRef { $0.wake() }
        }
        options.control = {
          Unmanaged<ConsumerPump>.fromOpaque($0!).takeUnretainedValue().control()
        }
        options.idle = { Unmanaged<ConsumerPump>.fromOpaque($0!).takeUnretainedValue().idle() }
        options.finalize = { Unmanaged<ConsumerPump>.fromOpaque($0!).release() }
      } else {
        // Not retained: both are called by the consumer's own run loop only.
        options.context = Unmanaged.passUnretained(consumer).toOpaque()
        options.control = { Unmanaged<Consumer>.fromOpaque($0!).takeUnretainedValue().control() }
        options.idle = { Unmanaged<Consumer>.fromOpaque($0!).takeUnretainedValue().idle() }
      }
      // Whatever drains it delivers.
      options.batches = true
      options.bound(capacity)
      var made: OpaquePointer?
      if let shared {
        // More than EVC_WORKERS_MAX are refused: `SharedMailbox.maximumWorkers`.
        requireCore(evc_worker_create(shared, &options, &made), "make a worker")
        worker = made!
        mailbox = evc_worker_mailbox(made!)
        evc_worker_hold(made!)
      } else {
        requireCore(evc_mailbox_create(&options, &made), "make a mailbox")
        worker = nil
        mailbox = made!
      }
    }

    deinit {
      // No reference is left, so that the run loop has returned or never began.
      if let worker {
        evc_worker_destroy(worker)
      } else {
        // Its driver may have been refused before the last job: what waits ends here, and not once the last thread
        // forgets the mailbox that has it in its cache of routes. The pump does not know the consumer any more.
        if isPumped {
          evc_mailbox_close(mailbox)
          _ = evc_mailbox_pump_until(mailbox, .max, .max, nil)
        }
        evc_mailbox_release(mailbox)
      }
      if isDrivenByLoop { LockFreeReclaimer.removeLoop() }
    }

    func addSubscription(_ receiver: Receiver) -> Subscription {
      add(receiver, by: evc_mailbox_add_subscription)
    }

    func addLatestSubscription(_ receiver: Receiver) -> Subscription {
      guard let keys = receiver.keys else { return add(receiver, by: evc_mailbox_add_latest_subscription) }
      // The receiver, which the subscription retains, retains the keys.
      return add(receiver) { mailbox, options, made in
        withUnsafePointer(to: evc_conflation(keys)) {
          evc_mailbox_add_conflated_subscription(mailbox, options, $0, made)
        }
      }
    }

    func supersededCount(of subscription: Subscription) -> UInt64 {
      evc_latest_subscription_superseded(OpaquePointer(subscription.pointer))
    }

    private func add(
      _ receiver: Receiver,
      by create: (
        OpaquePointer, UnsafePointer<evc_subscription_options>, UnsafeMutablePointer<OpaquePointer?>
      ) -> evc_status
    ) -> Subscription {
      var options = evc_subscription_options()
      options.size = MemoryLayout.size(ofValue: options)
      options.unbounded = receiver.isUnbounded
      // Retained until the core frees the subscription with the mailbox.
      options.context = Unmanaged.passRetained(receiver).toOpaque()
      options.deliver = { context, payload, envelope, owned in
        Unmanaged<Receiver>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
          $0.deliver(
            payload.unsafelyUnwrapped, UnsafeRawPointer(envelope.unsafelyUnwrapped), owned: owned)
        }
      }
      options.deliver_batch = { context, payload, envelope, walk in
        Unmanaged<Receiver>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
          $0.deliver(
            payload.unsafelyUnwrapped, UnsafeRawPointer(envelope.unsafelyUnwrapped),
            EventBatch(walk.unsafelyUnwrapped, take: evc_batch_next))
        }
      }
      if receiver.drop != nil {
        options.drop = { context, payload in
          Unmanaged<Receiver>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.drop!(payload!) }
        }
      }
      options.finalize = { Unmanaged<Receiver>.fromOpaque($0!).release() }
      var made: OpaquePointer?
      requireCore(create(mailbox, &options, &made), "add a subscription")
      return Subscription(pointer: UnsafeMutableRawPointer(made!))
    }

    func run(_ consumer: Consumer) {
      withExtendedLifetime(consumer) {
        if let worker {
          _ = evc_worker_run(worker)
        } else {
          _ = evc_mailbox_run(mailbox)
        }
      }
    }

    func pump(_ consumer: Consumer, limit: Int, until deadline: UInt64) -> PumpResult {
      if let worker { return poll(worker, consumer, limit: limit) }
      return withExtendedLifetime(consumer) {
        let status = evc_mailbox_pump_until(mailbox, UInt64(limit), deadline, nil)
        switch status {
        case EVC_OK, EVC_TIMED_OUT: return .more
        case EVC_EMPTY: return .dry
        default:
          require(
            status == EVC_CLOSED,
            "EventCore could not pump a mailbox: \(String(cString: evc_status_text(status))).")
          return .ended
        }
      }
    }

    /// `pump` of a worker, which has no deadline: only a deterministic central pumps workers.
    private func poll(_ worker: OpaquePointer, _ consumer: Consumer, limit: Int) -> PumpResult {
      withExtendedLifetime(consumer) {
        for _ in 0..<limit {
          switch evc_worker_poll(worker) {
          case EVC_OK: continue
          case EVC_EMPTY: return .dry
          default: return .ended
          }
        }
        return .more
      }
    }

    func enter() -> OpaquePointer? { evc_mailbox_enter(mailbox) }
    func leave(_ before: OpaquePointer?) { evc_mailbox_leave(before) }

    func openBatch(through router: any RouterCore) -> OpenBatch? {
      (router as? LockFreeRouter).map {
        OpenBatch(consumed: evc_mailbox_consumed(mailbox), version: evc_router_version($0.router))
      }
    }

    func admit() {
      // Only of a worker: the seam's contract.
      evc_worker_admit(worker!)
    }

    func interrupt() { evc_mailbox_interrupt(mailbox) }
    func close() { evc_mailbox_close(mailbox) }
    func closeWhenEmpty() { evc_mailbox_close_when_empty(mailbox) }

    func depths() -> [Int] { laneCounts { evc_mailbox_depths(mailbox, $0) } }

    var statistics: evc_mailbox_statistics {
      var statistics = evc_mailbox_statistics()
      evc_mailbox_read_statistics(mailbox, &statistics)
      return statistics
    }
  }

  extension evc_mailbox_options {
    mutating func bound(_ capacity: EventMailboxCapacity) {
      self.capacity = UInt64(capacity.limit ?? 0)
      switch capacity.policy {
      case .refuse: overflow = EVC_OVERFLOW_REFUSE
      case .dropNewest: overflow = EVC_OVERFLOW_DROP_NEWEST
      case .dropOldest: overflow = EVC_OVERFLOW_DROP_OLDEST
      case .block(let limit):
        overflow = EVC_OVERFLOW_BLOCK
        block_ns = limit.wholeNanoseconds
      }
    }
  }

  /// Both mailboxes of the C core.
  protocol LockFreeMailboxBase {
    /// Of one moment.
    var statistics: evc_mailbox_statistics { get }
  }

  extension LockFreeMailboxBase {
    var supersededCount: UInt64 { statistics.superseded }

    func counts() -> (taken: UInt64, dropped: UInt64) {
      let statistics = statistics
      return (statistics.taken, statistics.dropped)
    }

    var overflow: OverflowCounts {
      let statistics = statistics
      return OverflowCounts(
        refused: statistics.refused, dropped: statistics.overflowed, highWaterMark: statistics.high_water)
    }

    func removeLatestSubscription(_ subscription: Subscription) {
      evc_latest_subscription_release(OpaquePointer(subscription.pointer))
    }
  }

  /// What a function of the core writes for each lane.
  func laneCounts(_ read: (UnsafeMutablePointer<UInt64>) -> Void) -> [Int] {
    withUnsafeTemporaryAllocation(of: UInt64.self, capacity: Lane.count) { counts in
      read(counts.baseAddress!)
      return counts.map(Int.init)
    }
  }
#endif
