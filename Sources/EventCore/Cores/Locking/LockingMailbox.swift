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

/// The mailbox in pure Swift: an inbox under a mutex, of which the consumer takes over the whole
/// queue that is next.
///
/// It then takes one after the other without the mutex, until that queue is dry, or `urgent` is set:
/// a post does so before it returns if it comes before what the consumer works on (D1). Of a stack
/// it takes one at a time, since each post comes before the others (D3).
///
/// A worker of a shared mailbox takes from there too; both inboxes have one mutex, and it takes one
/// at a time.
///
/// Who touches what: `own` and `lanes` the consumer's thread only. One file, though long: taking, waiting and
/// ending all rest on these two.
final class LockingMailbox: MailboxCore, LockingInboxOwner, @unchecked Sendable {
  private struct Own: ~Copyable {
    /// The queue of `lanes` that it works on; otherwise one that is always empty, so that the next
    /// step looks.
    var lane = 0
    var buffer = LockingBuffer()
    /// Events since the last look.
    var sinceLook = 0
    /// As of the last look.
    var looksAtShared = false
  }

  let inbox: LockingInbox
  /// Where a worker takes from too, and that it keeps alive; nil for others.
  private let sharedMailbox: LockingSharedMailbox?
  private let shared: LockingInbox?
  private let own: UnsafeMutablePointer<Own>
  /// The queues that it has taken over. What is in one of them came before all that is in the same
  /// lane of the inbox.
  private let laneMemory = UnsafeMutableRawPointer.allocate(
    byteCount: LockingLanes.size, alignment: 64)
  private let lanes: LockingLanes
  private let bed: LockingBed
  private let strategy: EventWaitStrategy
  /// Woken in place of a thread; nil if the consumer has one.
  private let pump: ConsumerPump?
  /// What a worker took from the shared mailbox. Written by its thread.
  private let takenShared = Atomic<UInt64>(0)

  /// How many bytes an idle mailbox keeps in a lane, and how long it keeps what a burst has left: it
  /// may soon be needed again.
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
    bed = LockingBed(inbox.mutex, pump)
    // On lines of its own: it is written for each event, and what lies beside it others read.
    own = UnsafeMutableRawPointer.allocate(
      byteCount: (MemoryLayout<Own>.size + 127) & -128, alignment: 128
    ).bindMemory(to: Own.self, capacity: 1)
    own.initialize(to: Own())
    lanes = LockingLanes(at: laneMemory)
    inbox.state.pointee.isHeld = shared != nil
    // Armed: the first post has it pumped.
    if pump != nil { lieDown() }
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
    /// With the slot that the event was in, if any, which is to be let go after it. Nil for a token
    /// that stood for nothing.
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
    // Acquiring: pairs with the post that set it; the data itself is ordered by the mutex.
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
    letThemGetAhead()
    inbox.mutex.lock()
    let step = lockedLook(afterControl)
    // Who is to look after what is shared and waits still. A post wakes one worker, which may be
    // this one, and this one has something of its own to do, or comes upon more.
    var sleeper: LockingBed?
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
    // A worker follows its shared mailbox once it is ready, and leaves what is in there to the others
    // when it ends.
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
    // Who spins looks as long as there is something.
    shared.didLook(
      stillUrgent: shared.hot.pointee.occupied != 0 || shared.hot.pointee.refuses)
    let step = step(record, shared)
    if case .event(.some, _, _) = step {
      // Relaxed: a figure; only this thread writes it.
      takenShared.store(takenShared.load(ordering: .relaxed) + 1, ordering: .relaxed)
    }
    return step
  }

  /// What a taken record comes to. Locked.
  private func step(_ record: LockingRecord, _ inbox: LockingInbox) -> Step {
    let (event, slot) = inbox.event(of: record, into: &own.pointee.buffer)
    return .event(event, slot, isShared: inbox === shared)
  }

  /// Dry, and the last look brought little: taking the lock from the producers, and with it the
  /// lines that they fill, costs both sides more than this wait does if it is for a few events.
  private func letThemGetAhead() {
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
      getUp()
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

  /// Whether there is something to do. Relaxed where the mutex is held: it orders the writers;
  /// elsewhere it is a hint.
  private var hasNews: Bool {
    inbox.urgent.pointee.load(ordering: .relaxed)
      || own.pointee.looksAtShared && shared.unsafelyUnwrapped.urgent.pointee.load(ordering: .relaxed)
  }

  /// Has those who post wake this consumer. Locked.
  private func lieDown() {
    bed.isAsleep = true
    inbox.lieDown(bed)
    if own.pointee.looksAtShared { shared?.lieDown(bed) }
  }

  private func getUp() {
    bed.isAsleep = false
    inbox.getUp(bed)
    shared?.getUp(bed)
  }

  /// False if there is something to do.
  private func arm() -> Bool {
    trim(to: Self.keptBytes)
    // Under the lock, so that a post either comes before and is seen, or finds it armed.
    return inbox.withLock {
      getUp()
      guard !hasNews else { return false }
      lieDown()
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

  /// False if the time is over and nothing has come.
  private func sleep(until deadline: UInt64?) -> Bool {
    inbox.withLock {
      let hasMuch =
        lanes.contains(over: Self.keptBytes) || inbox.lanes.contains(over: Self.keptBytes)
      while !hasNews {
        lieDown()
        let isInTime = bed.monitor.wait(until: hasMuch ? deadline : nil)
        getUp()
        if !isInTime, !hasNews { return false }
      }
      return true
    }
  }

  /// Gives unused memory back to the system, but for so many bytes of each lane.
  private func trim(to kept: Int) {
    let blocks = lanes.takeMemory(over: kept) + inbox.withLock { inbox.lanes.takeMemory(over: kept) }
    for block in blocks { block.deallocate() }
  }

  /// Looks for as long as the strategy says. True if there is news.
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
