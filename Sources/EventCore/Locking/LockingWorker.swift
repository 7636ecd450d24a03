// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The own mailbox of a worker of a `LockingSharedMailbox`, and its run loop over both.
///
/// Who touches what: `own` with the shared mailbox's mutex held; `returns` the worker's thread
/// only.
final class LockingWorker: MailboxCore, LockingSink, @unchecked Sendable {
  struct Own: ~Copyable {
    var lanes = LockingLanes()
    var depths = [Int](repeating: 0, count: Lane.count)
    var subscriptions: [LockingSubscription] = []
    /// By their subscriptions; see LockingSharedLatest.swift.
    var latests: [UnsafeMutableRawPointer: LockingLatest] = [:]
    var superseded: UInt64 = 0
    var refuses = false
    var closes = false
    /// Until `admit`.
    var isHeld = false
    /// Whether it is held or refuses: one flag, so that a take of an admitted worker asks for
    /// nothing more.
    var leavesShared = false
    var isInterrupted = false
    var taken: UInt64 = 0
    var dropped: UInt64 = 0
  }

  /// Where the worker sleeps.
  let bed = LockingBed()
  let mailbox: LockingSharedMailbox
  private let strategy: EventWaitStrategy
  let own: UnsafeMutablePointer<Own>
  private let returns: UnsafeMutablePointer<LockingReturns>

  init(_ mailbox: LockingSharedMailbox, _ strategy: EventWaitStrategy, isHeld: Bool) {
    self.mailbox = mailbox
    self.strategy = strategy
    own = .allocate(capacity: 1)
    own.initialize(to: Own())
    own.pointee.isHeld = isHeld
    own.pointee.leavesShared = isHeld
    returns = .allocate(capacity: 1)
    returns.initialize(to: LockingReturns())
  }

  deinit {
    // Nobody else knows the worker any more: this thread is its consumer now.
    dropOwn()
    returns.deinitialize(count: 1)
    returns.deallocate()
    own.deinitialize(count: 1)
    own.deallocate()
  }

  // MARK: Any thread

  func post(_ first: UnsafeMutableRawPointer, _ last: UnsafeMutableRawPointer, count: Int) -> Bool {
    var isAccepted = false
    tell { own in
      guard !own.refuses else { return }
      isAccepted = true
      own.depths[LockingEnvelope.lane(first)] += count
      own.lanes.put(chain: first)
    }
    return isAccepted
  }

  func addSubscription(_ receiver: Receiver) -> Subscription {
    let subscription = LockingSubscription(receiver, self)
    mailbox.withLock { _ in own.pointee.subscriptions.append(subscription) }
    return Subscription(pointer: Unmanaged.passUnretained(subscription).toOpaque())
  }

  func interrupt() { tell { $0.isInterrupted = true } }

  func admit() {
    tell { own in
      own.isHeld = false
      own.leavesShared = own.refuses
    }
  }

  func close() {
    tell { own in
      own.refuses = true
      own.leavesShared = true
      own.closes = true
    }
  }

  func closeWhenEmpty() {
    tell { own in
      own.refuses = true
      own.leavesShared = true
    }
  }

  func depths() -> [Int] { mailbox.withLock { _ in own.pointee.depths } }

  func counts() -> (taken: UInt64, dropped: UInt64) {
    mailbox.withLock { _ in (own.pointee.taken, own.pointee.dropped) }
  }

  /// Changes what this worker has to do, and wakes it if it sleeps.
  func tell(_ change: (inout Own) -> Void) {
    mailbox.withLock { (state: inout LockingSharedMailbox.State) -> LockingWorker? in
      change(&own.pointee)
      if let index = state.asleep.firstIndex(where: { $0 === self }) {
        return state.asleep.remove(at: index)
      }
      if let index = state.asleepHeld.firstIndex(where: { $0 === self }) {
        return state.asleepHeld.remove(at: index)
      }
      return nil
    }
  }

  // MARK: The worker's thread

  private enum Step {
    /// With the slot that the event was in, if any, which is to be let go after it.
    case deliver(UnsafeMutableRawPointer, Unmanaged<LockingLatestSlot>?, wake: LockingWorker?)
    case deliverShared(UnsafeMutableRawPointer, Unmanaged<LockingLatestSlot>?, wake: LockingWorker?)
    /// A token was taken that stood for nothing.
    case letGo(Unmanaged<LockingLatestSlot>)
    case control(wake: LockingWorker?)
    case wait(news: UInt64)
    case end(wake: LockingWorker?)
  }

  func run(_ consumer: Consumer) {
    var afterControl = false
    while true {
      let step = mailbox.withLock { nextStep(&$0, afterControl: afterControl) }
      afterControl = false
      switch step {
      case .deliver(let envelope, let slot, let next):
        next?.bed.wake()
        let moved = LockingEnvelope.receiver(envelope)._withUnsafeGuaranteedRef {
          $0.deliver(
            envelopePayload(envelope), UnsafeRawPointer(envelope),
            owned: LockingEnvelope.ownsPayload(envelope))
        }
        LockingEnvelope.end(envelope, payloadMoved: moved, &returns.pointee)
        slot?.release()
      case .deliverShared(let envelope, let slot, let next):
        next?.bed.wake()
        let moved = LockingEnvelope.subscription(envelope)._withUnsafeGuaranteedRef {
          consumer.deliverShared(
            $0.entry, envelopePayload(envelope), envelope,
            owned: LockingEnvelope.ownsPayload(envelope))
        }
        LockingEnvelope.end(envelope, payloadMoved: moved, &returns.pointee)
        slot?.release()
      case .letGo(let slot):
        slot.release()
      case .control(let next):
        // It may end what a handler held, which is user code and takes its time.
        next?.bed.wake()
        consumer.control()
        afterControl = true
      case .wait(let news):
        consumer.idle()
        wait(news)
      case .end(let next):
        next?.bed.wake()
        end()
        return
      }
    }
  }

  /// `afterControl` puts a further interrupt off by one step, so that a stream of them holds up
  /// nothing.
  private func nextStep(_ shared: inout LockingSharedMailbox.State, afterControl: Bool) -> Step {
    if own.pointee.isInterrupted, !afterControl {
      own.pointee.isInterrupted = false
      return .control(wake: nextWorker(&shared))
    }
    if own.pointee.closes || (shared.closes && !own.pointee.isHeld) {
      return .end(wake: nextWorker(&shared))
    }
    let ownFirst = own.pointee.lanes.firstLane
    // A worker that ends, or is not ready, leaves what is shared to the others.
    let sharedFirst = own.pointee.leavesShared ? Lane.count : shared.lanes.firstLane
    if sharedFirst < ownFirst, let (envelope, lane) = shared.lanes.takeFirst() {
      shared.depths[lane] -= 1
      let slot = LockingLatestSlot.of(envelope)
      guard let event = event(of: envelope, slot, lane) else { return .letGo(slot!) }
      shared.taken += 1
      own.pointee.taken += 1
      return .deliverShared(event, slot, wake: nextWorker(&shared))
    }
    if let (envelope, lane) = own.pointee.lanes.takeFirst() {
      own.pointee.depths[lane] -= 1
      let slot = LockingLatestSlot.of(envelope)
      guard let event = event(of: envelope, slot, lane) else { return .letGo(slot!) }
      own.pointee.taken += 1
      return .deliver(event, slot, wake: nextWorker(&shared))
    }
    if own.pointee.refuses {
      return .end(wake: nextWorker(&shared))
    }
    if shared.refuses, !own.pointee.isHeld {
      // All that was shared is taken, and nothing is left of its own.
      own.pointee.refuses = true
      return .end(wake: nil)
    }
    return .wait(news: mailbox.news.load(ordering: .relaxed))
  }

  /// The event that was taken, or that a token stands for, if any. Locked.
  private func event(
    of envelope: UnsafeMutableRawPointer, _ slot: Unmanaged<LockingLatestSlot>?, _ lane: Int
  ) -> UnsafeMutableRawPointer? {
    guard let slot else { return envelope }
    return slot._withUnsafeGuaranteedRef { $0.take(lane, anyLane: false) }
  }

  /// Who is to look after what waits still. A post wakes one worker, which may be this one, and
  /// this one may have something of its own to do, or come upon more.
  private func nextWorker(_ shared: inout LockingSharedMailbox.State) -> LockingWorker? {
    shared.lanes.occupied != 0 ? shared.asleep.popLast() : nil
  }

  private func end() {
    let drops = mailbox.withLock { shared -> Bool in
      own.pointee.refuses = true
      return shared.closes
    }
    if drops {
      mailbox.dropAll()
    }
    dropOwn()
    returns.pointee.flush()
  }

  /// Frees what waits for this worker alone, outside the lock: the end of a payload is user code.
  private func dropOwn() {
    while true {
      let next = mailbox.withLock { _ -> LockingDropped? in
        guard let (envelope, lane) = own.pointee.lanes.takeFirst() else { return nil }
        own.pointee.depths[lane] -= 1
        let next = LockingDropped(envelope, lane)
        own.pointee.dropped += next.event == nil ? 0 : 1
        return next
      }
      guard let next else { return }
      next.end(&returns.pointee)
    }
  }

  private func wait(_ news: UInt64) {
    if spin(news) { return }
    returns.pointee.flush()
    let sleeps = mailbox.withLock { shared -> Bool in
      // Whatever changes something changes `news` with the mutex held.
      guard mailbox.news.load(ordering: .relaxed) == news else { return false }
      if own.pointee.isHeld {
        shared.asleepHeld.append(self)
      } else {
        shared.asleep.append(self)
      }
      return true
    }
    if sleeps {
      bed.sleep()
    }
  }

  /// Looks for as long as the strategy says. True if there is news.
  private func spin(_ news: UInt64) -> Bool {
    let limit = strategy.spinNanoseconds
    let start = limit == nil ? 0 : monotonicNanoseconds()
    var turns = 0
    while true {
      // Only a hint: `nextStep` looks under the lock.
      if mailbox.news.load(ordering: .acquiring) != news { return true }
      turns += 1
      if strategy == .yield {
        sched_yield()
      } else if turns % 64 == 0, let limit, monotonicNanoseconds() - start >= limit {
        return false
      }
    }
  }
}

/// Where one thread sleeps until another wakes it: a wake-up that comes first is not lost.
final class LockingBed: @unchecked Sendable {
  // `isWoken` is guarded by the monitor.
  private let monitor = Monitor()
  private var isWoken = false

  /// The one sleeper. Each sleep is ended by one `wake`.
  func sleep() {
    monitor.lock()
    while !isWoken {
      _ = monitor.wait(until: nil)
    }
    isWoken = false
    monitor.unlock()
  }

  /// Whoever took the sleeper off the list of those asleep; once for each sleep.
  func wake() {
    monitor.lock()
    isWoken = true
    monitor.unlock()
    monitor.wake()
  }
}
