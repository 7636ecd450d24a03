// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The mailbox in pure Swift: an inbox under a mutex, from which the consumer takes over the whole queue that
/// is next.
///
/// It works that queue off without the mutex until the queue is dry or `urgent` is set. A post that comes
/// before what the consumer works on sets `urgent` before it returns (D1). From a stack the consumer takes
/// one record at a time, since each post comes before the others (D3).
///
/// A worker takes from its shared mailbox too. Both inboxes have one mutex, and a worker always takes one
/// record at a time.
///
/// Synchronization: only the consumer's thread touches `own` and `lanes`. One file, though long: taking,
/// waiting and ending all rest on these two.
final class LockingMailbox: MailboxCore, LockingInboxOwner, @unchecked Sendable {
  private struct Own: ~Copyable {
    /// The queue of `lanes` that it works on. Otherwise 0, which is always empty there, so that the next step
    /// looks.
    var lane = 0
    var buffer = LockingBuffer()
    /// Events since the last look.
    var sinceLook = 0
    /// Whether the last look was into the shared mailbox, too.
    var looksAtShared = false
  }

  let inbox: LockingInbox
  /// The shared mailbox of a worker, which keeps it alive, and its inbox; nil for others.
  private let sharedMailbox: LockingSharedMailbox?
  private let shared: LockingInbox?
  private let own: UnsafeMutablePointer<Own>
  /// The queues that the consumer has taken over. What is in one of them came before all that is in the
  /// same lane of the inbox.
  private let laneMemory = UnsafeMutableRawPointer.allocate(
    byteCount: LockingLanes.size, alignment: 64)
  private let lanes: LockingLanes
  private let sleeper: LockingSleeper
  private let strategy: EventWaitStrategy
  /// Woken in place of a thread; nil if the consumer has one.
  private let pump: ConsumerPump?
  /// How many events a worker took from the shared mailbox. Written by its thread.
  private let takenShared = Atomic<UInt64>(0)

  /// How many bytes an idle mailbox keeps in a lane, and for how long it keeps more than that after a burst,
  /// since the next burst may come soon.
  private static let keptBytes = 32_768
  private static let keptNanoseconds: UInt64 = 1_000_000_000

  init(
    _ strategy: EventWaitStrategy, _ pump: ConsumerPump?, of shared: LockingSharedMailbox? = nil
  ) {
    self.strategy = strategy
    self.pump = pump
    sharedMailbox = shared
    self.shared = shared?.inbox
    inbox = LockingInbox(sharing: shared?.inbox)
    sleeper = LockingSleeper(inbox.mutex, pump)
    // On lines of its own: it is written for each event, and other threads read what would lie beside it.
    own = UnsafeMutableRawPointer.allocate(
      byteCount: (MemoryLayout<Own>.size + 127) & -128, alignment: 128
    ).bindMemory(to: Own.self, capacity: 1)
    own.initialize(to: Own())
    lanes = LockingLanes(at: laneMemory)
    inbox.state.pointee.isHeld = shared != nil
    // Armed: the first post has it pumped.
    if pump != nil { announceSleep() }
  }

  deinit {
    // Nobody else knows the mailbox any more: this thread is its consumer now.
    end()
    inbox.forgetAll()
    laneMemory.deallocate()
    own.deinitialize(count: 1)
    own.deallocate()
  }

  // MARK: Any thread

  func addSubscription(_ receiver: Receiver) -> Subscription {
    inbox.addSubscription(receiver, drop: receiver.drop)
  }

  func addLatestSubscription(_ receiver: Receiver) -> Subscription {
    inbox.addLatestSubscription(receiver, drop: receiver.drop)
  }

  func admit() { inbox.tell { $0.isHeld = false } }
  func interrupt() { inbox.tell { $0.isInterrupted = true } }

  func counts() -> (taken: UInt64, dropped: UInt64) {
    let (taken, dropped) = inbox.counts()
    return (taken + takenShared.load(ordering: .relaxed), dropped)
  }

  // MARK: The consumer

  func run(_ consumer: Consumer) {
    while pump(consumer, limit: .max) != .ended {}
  }

  func pump(_ consumer: Consumer, limit: Int) -> PumpResult {
    var afterControl = false
    var left = limit
    while true {
      let step = nextStep(afterControl)
      afterControl = false
      switch step {
      case .event(let record, let slot, let isShared):
        if let record { deliver(record, isShared, consumer) }
        slot?.release()
        left -= 1
        if left == 0 { return .more }
      case .control:
        consumer.control()
        afterControl = true
      case .dry:
        consumer.idle()
        if pump == nil { wait() } else if arm() { return .dry }
      case .end:
        end()
        return .ended
      }
    }
  }

  private enum Step {
    /// With the slot that the event was in, if any, which is released after the event. Nil for a token that
    /// stood for nothing.
    case event(LockingRecord?, Unmanaged<LockingLatest>?, isShared: Bool)
    case control
    case dry
    case end
  }

  @inline(__always)
  private func deliver(_ record: LockingRecord, _ isShared: Bool, _ consumer: Consumer) {
    record.header.pointee.subscription._withUnsafeGuaranteedRef { subscription in
      let payload = envelopePayload(record.address)
      let moved =
        isShared
        ? subscription.entry._withUnsafeGuaranteedRef {
          consumer.deliverShared($0, payload, record.address, owned: record.ownsPayload)
        }
        : subscription.receiver._withUnsafeGuaranteedRef {
          $0.deliver(payload, UnsafeRawPointer(record.address), owned: record.ownsPayload)
        }
      record.end(payloadMoved: moved, subscription.drop)
    }
  }

  /// `afterControl` puts a further interrupt off by one step, so that a stream of them holds up
  /// nothing.
  @inline(__always)
  private func nextStep(_ afterControl: Bool) -> Step {
    let lane = lanes[own.pointee.lane]
    // Acquiring: pairs with the releasing store in `LockingInbox.setUrgent`.
    guard !lane.pointee.isEmpty, !inbox.urgent.pointee.load(ordering: .acquiring)
    else { return look(afterControl) }
    own.pointee.sinceLook &+= 1
    let record = lane.pointee.take(isStack: false)
    guard record.isToken else {
      inbox.countTaken(own.pointee.lane)
      return .event(record, nil, isShared: false)
    }
    return inbox.withLock { step(record, inbox) }
  }

  @inline(never)
  private func look(_ afterControl: Bool) -> Step {
    letProducersGetAhead()
    inbox.mutex.lock()
    let step = lockedLook(afterControl)
    // If something is left in the shared mailbox, another worker has to look. A post there wakes one worker
    // alone, which may be this one, although it now has something else to do.
    var sleeper: LockingSleeper?
    if let shared, shared.hot.pointee.occupied != 0 {
      sleeper = shared.nextSleeper()
    }
    inbox.mutex.unlock()
    sleeper?.wake()
    return step
  }

  private func lockedLook(_ afterControl: Bool) -> Step {
    let (state, hot) = (inbox.state, inbox.hot)
    inbox.didLook(stillUrgent: state.pointee.isInterrupted)
    // A worker looks into its shared mailbox once it is admitted. When its own one closes, it leaves what is
    // in the shared one to the others.
    let followed = state.pointee.isHeld ? nil : shared
    own.pointee.looksAtShared = followed != nil && !hot.pointee.refuses
    if state.pointee.isInterrupted, !afterControl {
      state.pointee.isInterrupted = false
      return .control
    }
    if state.pointee.closes || followed?.state.pointee.closes == true { return .end }
    let (first, firstQueue) = (hot.pointee.firstLane, Int(Lane.firstQueue))
    let lane = (firstQueue..<max(first, firstQueue)).first { !lanes[$0].pointee.isEmpty } ?? first
    own.pointee.lane = 0
    hot.pointee.first = UInt8(Lane.count)
    if own.pointee.looksAtShared, let shared, shared.hot.pointee.firstLane < lane {
      return takeShared(shared.hot.pointee.firstLane, shared)
    }
    guard lane < Lane.count else {
      return hot.pointee.refuses || followed?.hot.pointee.refuses == true ? .end : .dry
    }
    if shared != nil || LockingLane.isStack(lane) {
      return step(inbox.take(lane, into: &own.pointee.buffer), inbox)
    }
    if lanes[lane].pointee.isEmpty {
      lanes[lane].pointee.takeAll(of: &inbox.lanes[lane].pointee)
      hot.pointee.occupied &= ~(1 << UInt16(lane))
    }
    own.pointee.lane = lane
    hot.pointee.first = UInt8(lane)
    own.pointee.sinceLook = 1
    return step(lanes[lane].pointee.take(isStack: false), inbox)
  }

  /// Locked.
  private func takeShared(_ lane: Int, _ shared: LockingInbox) -> Step {
    let record = shared.take(lane, into: &own.pointee.buffer)
    // A worker that spins goes on to look as long as there is something.
    shared.didLook(
      stillUrgent: shared.hot.pointee.occupied != 0 || shared.hot.pointee.refuses)
    let step = step(record, shared)
    if case .event(.some, _, _) = step {
      // Relaxed: a figure; only this thread writes it.
      takenShared.store(takenShared.load(ordering: .relaxed) + 1, ordering: .relaxed)
    }
    return step
  }

  /// The step for a record that was taken. Locked.
  private func step(_ record: LockingRecord, _ inbox: LockingInbox) -> Step {
    let (event, slot) = inbox.event(of: record, into: &own.pointee.buffer)
    return .event(event, slot, isShared: inbox === shared)
  }

  /// Waits for a microsecond if the queue is dry and the last look brought little. Whoever takes the lock
  /// takes it, and the lines that it guards, from the producers: for a few events, that costs both sides
  /// more than this wait.
  private func letProducersGetAhead() {
    if lanes[own.pointee.lane].pointee.isEmpty, (1..<64).contains(own.pointee.sinceLook),
      strategy != .spin, pump == nil
    {
      let end = monotonicNanoseconds() + 1_000
      while monotonicNanoseconds() < end {}
    }
    own.pointee.sinceLook = 0
  }

  private func end() {
    inbox.withLock {
      withdrawSleep()
      inbox.hot.pointee.refuses = true
    }
    for lane in 0..<Lane.count {
      while !lanes[lane].pointee.isEmpty {
        inbox.drop(lanes[lane].pointee.take(isStack: false), &own.pointee.buffer)
      }
    }
    if let shared, shared.withLock({ shared.state.pointee.closes }) { shared.dropAll() }
    inbox.end()
    trim(to: 0)
  }

  // MARK: Waiting

  /// Whether there is something to do. Relaxed: a hint, or with the mutex held, which orders it.
  private var hasNews: Bool {
    inbox.urgent.pointee.load(ordering: .relaxed)
      || own.pointee.looksAtShared && shared.unsafelyUnwrapped.urgent.pointee.load(ordering: .relaxed)
  }

  /// Has the next post wake this consumer. Locked.
  private func announceSleep() {
    sleeper.isAsleep = true
    inbox.announceSleep(sleeper)
    if own.pointee.looksAtShared { shared?.announceSleep(sleeper) }
  }

  private func withdrawSleep() {
    sleeper.isAsleep = false
    inbox.withdrawSleep(sleeper)
    shared?.withdrawSleep(sleeper)
  }

  /// Has the next post wake the pump. False if there is something to do already.
  private func arm() -> Bool {
    trim(to: Self.keptBytes)
    // Under the lock, so that a post either comes before and is seen, or finds it armed.
    return inbox.withLock {
      withdrawSleep()
      guard !hasNews else { return false }
      announceSleep()
      return true
    }
  }

  private func wait() {
    if strategy.spinNanoseconds == nil { trim(to: Self.keptBytes) }
    if spin() { return }
    var deadline: UInt64? = monotonicNanoseconds() + Self.keptNanoseconds
    while !sleep(until: deadline) {
      trim(to: Self.keptBytes)
      deadline = nil
    }
  }

  /// False if the deadline has passed and nothing has come.
  private func sleep(until deadline: UInt64?) -> Bool {
    inbox.withLock {
      let hasMuch =
        lanes.contains(over: Self.keptBytes) || inbox.lanes.contains(over: Self.keptBytes)
      while !hasNews {
        announceSleep()
        let isInTime = sleeper.monitor.wait(until: hasMuch ? deadline : nil)
        withdrawSleep()
        if !isInTime, !hasNews { return false }
      }
      return true
    }
  }

  /// Frees unused memory, but for `kept` bytes of each lane.
  private func trim(to kept: Int) {
    let blocks = lanes.takeMemory(over: kept) + inbox.withLock { inbox.lanes.takeMemory(over: kept) }
    for block in blocks { block.deallocate() }
  }

  /// Looks for as long as the strategy says. True once there is something to do.
  private func spin() -> Bool {
    let limit = strategy.spinNanoseconds
    let start = limit == nil ? 0 : monotonicNanoseconds()
    var turns = 0
    while !hasNews {
      turns += 1
      if strategy == .yield {
        sched_yield()
      } else if turns % 64 == 0, let limit, monotonicNanoseconds() - start >= limit {
        return false
      }
    }
    return true
  }
}
