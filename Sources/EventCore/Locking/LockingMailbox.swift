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
/// lane that is next.
///
/// It then takes one after the other without the mutex, until that lane is dry, or `urgent` is set:
/// a post does so before it returns if it comes before what the consumer works on (D1). Of a stack
/// it takes one at a time, since each post comes before the others (D3).
///
/// A worker of a shared mailbox takes from there too; both inboxes have one mutex, and it takes one
/// at a time.
///
/// Who touches what: `own` the consumer's thread only.
final class LockingMailbox: MailboxCore, LockingInboxOwner, @unchecked Sendable {
  private struct Own: ~Copyable {
    /// Queues that were taken over, and chunks to give back.
    var lanes = LockingLanes()
    /// The lane that it works on.
    var lane = Lane.count
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
  private let bed: LockingBed
  private let strategy: EventWaitStrategy
  /// Woken in place of a thread; nil if the consumer has one.
  private let pump: ConsumerPump?
  /// What a worker took from the shared mailbox. Written by its thread.
  private let takenShared = Atomic<UInt64>(0)

  /// How many chunks an idle mailbox keeps, 64 KiB, and how long it keeps what a burst has left: it
  /// may soon be needed again.
  private static let keptChunks = 8
  private static let keptNanoseconds: UInt64 = 1_000_000_000

  init(
    _ strategy: EventWaitStrategy, _ pump: ConsumerPump?, of shared: LockingSharedMailbox? = nil,
    isHeld: Bool = false
  ) {
    self.strategy = strategy
    self.pump = pump
    sharedMailbox = shared
    self.shared = shared?.inbox
    inbox = LockingInbox(sharing: shared?.inbox)
    bed = LockingBed(inbox.mutex, pump)
    own = .allocate(capacity: 1)
    own.initialize(to: Own())
    inbox.state.pointee.isHeld = isHeld
    // Armed: the first post has it pumped.
    if pump != nil { lieDown() }
  }

  deinit {
    // Nobody else knows the mailbox any more: this thread is its consumer now.
    end()
    inbox.forgetAll()
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
    let lane = own.pointee.lane
    if lane < Lane.count { own.pointee.lanes.settle(lane) }
    // Acquiring: pairs with the post that set it; the data itself is ordered by the mutex.
    if own.pointee.lanes.occupied & 1 << UInt32(lane) != 0,
      !inbox.urgent.load(ordering: .acquiring), own.pointee.lanes.free.count < Self.keptChunks
    {
      let record = own.pointee.lanes.take(lane)
      if !record.isToken {
        inbox.countTaken(lane)
        own.pointee.sinceLook += 1
        return .event(record, nil, isShared: false)
      }
      return inbox.withLock { _ in
        inbox.countTaken(lane)
        return step(record)
      }
    }
    return look(afterControl)
  }

  @inline(never)
  private func look(_ afterControl: Bool) -> Step {
    letThemGetAhead()
    inbox.mutex.lock()
    let step = lockedLook(afterControl)
    // Who is to look after what is shared and waits still. A post wakes one worker, which may be
    // this one, and this one has something of its own to do, or comes upon more.
    var sleeper: LockingBed?
    if let shared, shared.state.pointee.lanes.occupied != 0 {
      sleeper = shared.state.pointee.nextSleeper()
    }
    inbox.mutex.unlock()
    sleeper?.wake()
    return step
  }

  private func lockedLook(_ afterControl: Bool) -> Step {
    let state = inbox.state
    own.pointee.lanes.free.moveAll(to: &state.pointee.lanes.free)
    own.pointee.lane = Lane.count
    // Relaxed, all in here: the mutex orders the writers.
    inbox.urgent.store(state.pointee.isInterrupted, ordering: .relaxed)
    own.pointee.looksAtShared = shared != nil && !state.pointee.isHeld && !state.pointee.refuses
    if state.pointee.isInterrupted, !afterControl {
      state.pointee.isInterrupted = false
      return .control
    }
    let followsShared = shared != nil && !state.pointee.isHeld
    if state.pointee.closes || followsShared && shared.unsafelyUnwrapped.state.pointee.closes {
      return .end
    }
    let ownLane = (state.pointee.lanes.occupied | own.pointee.lanes.occupied).firstLane
    // A worker that ends, or is not ready, leaves what is shared to the others.
    if own.pointee.looksAtShared, let shared {
      let lane = shared.state.pointee.lanes.occupied.firstLane
      if lane < ownLane { return takeShared(lane, shared) }
    }
    guard ownLane < Lane.count else {
      state.pointee.first = Lane.count
      let isOver = followsShared && shared.unsafelyUnwrapped.state.pointee.refuses
      return state.pointee.refuses || isOver ? .end : .dry
    }
    if shared != nil || ownLane < Int(Lane.firstQueue) {
      return step(inbox.take(ownLane, into: &own.pointee.buffer))
    }
    own.pointee.lane = ownLane
    state.pointee.first = ownLane
    if own.pointee.lanes.occupied.firstLane != ownLane {
      own.pointee.lanes.takeAll(ownLane, from: &state.pointee.lanes)
    }
    inbox.countTaken(ownLane)
    return step(own.pointee.lanes.take(ownLane))
  }

  /// Locked.
  private func takeShared(_ lane: Int, _ shared: LockingInbox) -> Step {
    let record = shared.take(lane, into: &own.pointee.buffer)
    let state = shared.state
    // Who spins looks as long as there is something. Relaxed: the mutex orders the writers.
    shared.urgent.store(
      state.pointee.lanes.occupied != 0 || state.pointee.refuses, ordering: .relaxed)
    let (event, slot) = shared.event(of: record, into: &own.pointee.buffer)
    if event != nil {
      // Relaxed: a figure; only this thread writes it.
      takenShared.store(takenShared.load(ordering: .relaxed) + 1, ordering: .relaxed)
    }
    return .event(event, slot, isShared: true)
  }

  /// What a record of its own comes to. Locked.
  private func step(_ record: LockingRecord) -> Step {
    own.pointee.sinceLook += 1
    let (event, slot) = inbox.event(of: record, into: &own.pointee.buffer)
    return .event(event, slot, isShared: false)
  }

  /// Dry, and the last look brought little: taking the lock from the producers for each event would
  /// cost both sides more than half a microsecond's wait.
  private func letThemGetAhead() {
    if own.pointee.lane < Lane.count, own.pointee.lanes.occupied == 0, own.pointee.sinceLook < 16,
      strategy != .spin, pump == nil
    {
      let end = monotonicNanoseconds() + 500
      while monotonicNanoseconds() < end {}
    }
    own.pointee.sinceLook = 0
  }

  private func end() {
    inbox.withLock { state in
      getUp()
      state.refuses = true
      // Back to where they came from, to be dropped with what came after them.
      for lane in 0..<Lane.count {
        own.pointee.lanes.settle(lane)
        state.lanes.takeAll(lane, from: &own.pointee.lanes)
      }
    }
    if let shared, shared.withLock({ $0.closes }) { shared.dropAll() }
    inbox.end()
  }

  // MARK: Waiting

  /// Whether there is something to do. Relaxed where the mutex is held: it orders the writers;
  /// elsewhere it is a hint.
  private var hasNews: Bool {
    inbox.urgent.load(ordering: .relaxed)
      || own.pointee.looksAtShared && shared.unsafelyUnwrapped.urgent.load(ordering: .relaxed)
  }

  /// Has those who post wake this consumer. Locked.
  private func lieDown() {
    bed.isAsleep = true
    inbox.state.pointee.asleep.append(bed)
    if own.pointee.looksAtShared { shared?.state.pointee.asleep.append(bed) }
  }

  private func getUp() {
    bed.isAsleep = false
    inbox.state.pointee.asleep.removeAll { $0 === bed }
    shared?.state.pointee.asleep.removeAll { $0 === bed }
  }

  /// False if there is something to do.
  private func arm() -> Bool {
    inbox.trim(to: Self.keptChunks)
    // Under the lock, so that a post either comes before and is seen, or finds it armed.
    return inbox.withLock { _ in
      getUp()
      guard !hasNews else { return false }
      lieDown()
      return true
    }
  }

  private func wait() {
    if strategy.spinNanoseconds == nil { inbox.trim(to: Self.keptChunks) }
    if spin() { return }
    var deadline: UInt64? = monotonicNanoseconds() + Self.keptNanoseconds
    while !sleep(until: deadline) {
      inbox.trim(to: Self.keptChunks)
      deadline = nil
    }
  }

  /// False if the time is over and nothing has come.
  private func sleep(until deadline: UInt64?) -> Bool {
    inbox.withLock { state in
      let deadline = state.lanes.free.count > Self.keptChunks ? deadline : nil
      while !hasNews {
        lieDown()
        let isInTime = bed.monitor.wait(until: deadline)
        getUp()
        if !isInTime, !hasNews { return false }
      }
      return true
    }
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
