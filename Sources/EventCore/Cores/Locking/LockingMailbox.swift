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
    /// The queue that it works on, which it has taken over.
    var lane = Lane.count
    var chunks = LockingChunkList()
    /// The next record in the first of these chunks, and where they end.
    var next = LockingRecord.nowhere
    var end = LockingRecord.nowhere
    /// Chunks to give back.
    var free = LockingChunkList()
    var buffer = LockingBuffer()
    /// Events since the last look.
    var sinceLook = 0
    /// As of the last look.
    var looksAtShared = false

    deinit {
      var (chunks, free) = (chunks, free)
      chunks.deallocateAll()
      free.deallocateAll()
    }

    /// Makes the first of the chunks the one that is worked on.
    mutating func open() {
      next = chunks.first?.pointee.begin ?? LockingRecord.nowhere
      end = chunks.first?.pointee.end ?? LockingRecord.nowhere
    }

    @inline(__always)
    mutating func takeNext() -> LockingRecord {
      let record = LockingRecord(address: next)
      next += record.length
      return record
    }
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
    inbox.state.pointee.isHeld = shared != nil
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
    // Acquiring: pairs with the post that set it; the data itself is ordered by the mutex.
    if own.pointee.next != own.pointee.end || openNextChunk(),
      !inbox.urgent.pointee.load(ordering: .acquiring)
    {
      let record = own.pointee.takeNext()
      if !record.isToken {
        inbox.countTaken(own.pointee.lane)
        own.pointee.sinceLook &+= 1
        return .event(record, nil, isShared: false)
      }
      return inbox.withLock { _ in
        inbox.countTaken(own.pointee.lane)
        return step(record)
      }
    }
    return look(afterControl)
  }

  /// Goes on to the next chunk of the lane, once nobody needs the last record. False if there is
  /// none, or many are to be given back.
  @inline(never)
  private func openNextChunk() -> Bool {
    guard let done = own.pointee.chunks.removeFirst() else { return false }
    own.pointee.free.prepend(done)
    own.pointee.open()
    return own.pointee.chunks.first != nil && own.pointee.free.count < Self.keptChunks
  }

  @inline(never)
  private func look(_ afterControl: Bool) -> Step {
    letThemGetAhead()
    inbox.mutex.lock()
    let step = lockedLook(afterControl)
    // Who is to look after what is shared and waits still. A post wakes one worker, which may be
    // this one, and this one has something of its own to do, or comes upon more.
    var sleeper: LockingBed?
    if let shared, shared.state.pointee.lanes.firstLane < Lane.count {
      sleeper = shared.state.pointee.nextSleeper()
    }
    inbox.mutex.unlock()
    sleeper?.wake()
    return step
  }

  private func lockedLook(_ afterControl: Bool) -> Step {
    let state = inbox.state
    state.pointee.lanes.free.prependAll(of: &own.pointee.free)
    inbox.didLook(stillUrgent: state.pointee.isInterrupted)
    own.pointee.looksAtShared = shared != nil && !state.pointee.isHeld && !state.pointee.refuses
    if state.pointee.isInterrupted, !afterControl {
      state.pointee.isInterrupted = false
      return .control
    }
    let followsShared = shared != nil && !state.pointee.isHeld
    if state.pointee.closes || followsShared && shared.unsafelyUnwrapped.state.pointee.closes {
      return .end
    }
    let isAtWork = own.pointee.next != own.pointee.end
    let lane = min(state.pointee.lanes.firstLane, isAtWork ? own.pointee.lane : Lane.count)
    // A worker that ends, or is not ready, leaves what is shared to the others.
    if own.pointee.looksAtShared, let shared {
      let sharedLane = shared.state.pointee.lanes.firstLane
      if sharedLane < lane { return takeShared(sharedLane, shared) }
    }
    let isOneByOne = shared != nil || lane < Int(Lane.firstQueue)
    state.pointee.lanes.hot.pointee.first = UInt8(isOneByOne ? Lane.count : lane)
    guard lane < Lane.count else {
      let isOver = followsShared && shared.unsafelyUnwrapped.state.pointee.refuses
      return state.pointee.refuses || isOver ? .end : .dry
    }
    // So that the next step looks, too, if it takes one by one.
    if own.pointee.lane != lane { putBack() }
    if isOneByOne {
      // The next look is due at once: there may be more.
      defer { own.pointee.sinceLook = 0 }
      return step(inbox.take(lane, into: &own.pointee.buffer))
    }
    if own.pointee.next == own.pointee.end {
      own.pointee.chunks = state.pointee.lanes.takeAll(lane)
      own.pointee.lane = lane
      own.pointee.open()
    }
    inbox.countTaken(lane)
    return step(own.pointee.takeNext())
  }

  /// Leaves what it has not taken to a later look. Locked.
  private func putBack() {
    if own.pointee.next == own.pointee.end, let done = own.pointee.chunks.removeFirst() {
      own.pointee.free.prepend(done)
      own.pointee.open()
    }
    guard own.pointee.next != own.pointee.end, let chunk = own.pointee.chunks.first else { return }
    chunk.pointee.begin = own.pointee.next
    inbox.state.pointee.lanes.putBack(&own.pointee.chunks, own.pointee.lane)
    own.pointee.open()
  }

  /// Locked.
  private func takeShared(_ lane: Int, _ shared: LockingInbox) -> Step {
    let record = shared.take(lane, into: &own.pointee.buffer)
    // Who spins looks as long as there is something.
    shared.didLook(
      stillUrgent: shared.state.pointee.lanes.firstLane < Lane.count
        || shared.state.pointee.refuses)
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

  /// Dry, and the last look brought little: taking the lock from the producers, and with it the
  /// lines that they fill, costs both sides more than this wait does if it is for a few events.
  private func letThemGetAhead() {
    if own.pointee.next == own.pointee.end, (1..<64).contains(own.pointee.sinceLook),
      strategy != .spin, pump == nil
    {
      let end = monotonicNanoseconds() + 1_000
      while monotonicNanoseconds() < end {}
    }
    own.pointee.sinceLook = 0
  }

  private func end() {
    inbox.withLock { state in
      getUp()
      state.refuses = true
      // Back to where it came from, to be dropped with what came after it.
      putBack()
    }
    if let shared, shared.withLock({ $0.closes }) { shared.dropAll() }
    inbox.end()
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
    inbox.state.pointee.lieDown(bed)
    if own.pointee.looksAtShared { shared?.state.pointee.lieDown(bed) }
  }

  private func getUp() {
    bed.isAsleep = false
    inbox.state.pointee.getUp(bed)
    shared?.state.pointee.getUp(bed)
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
