// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What a mailbox of the locking core shares with its producers: ten lanes under a mutex.
///
/// It is apart from the mailbox since routes that threads remember keep it: after the end there is
/// nothing in it, and it refuses.
///
/// Who touches what: `hot`, `lanes` and `state` with the mutex held, in which no code of the user's runs;
/// `urgent` and `taken` are atomic.
final class LockingInbox: LockingSink, @unchecked Sendable {
  /// What a post looks at, beside the mutex and the lane of most events: each line more would have to
  /// come over from the consumer after each of its looks.
  struct Hot {
    /// One bit for each lane that holds something.
    var occupied: UInt16 = 0
    /// A post to a lane before this one concerns who takes.
    var first = UInt8(Lane.count)
    /// Whether those who take have been told so.
    var isTold = false
    var refuses = false
    var hasSleepers = false

    /// The first lane that holds something, or `Lane.count`.
    var firstLane: Int { occupied == 0 ? Lane.count : occupied.trailingZeroBitCount }
  }

  struct State {
    var closes = false
    var isInterrupted = false
    /// Of a worker's: until `admit`.
    var isHeld = false
    /// Who sleeps and is to be woken, the one that came last at the end: its cache is warmest.
    var asleep: [LockingBed] = []
    var dropped: UInt64 = 0
    var superseded: UInt64 = 0
    var subscriptions: [LockingSubscription] = []
    /// By their subscriptions.
    var latests: [UnsafeMutableRawPointer: LockingLatest] = [:]
  }

  let mutex: SystemMutex
  /// Whose mutex it is, if it is not this one's.
  private let owner: LockingInbox?
  private let memory: UnsafeMutableRawPointer
  let hot: UnsafeMutablePointer<Hot>
  let lanes: LockingLanes
  let state: UnsafeMutablePointer<State>
  /// Something has come that concerns who takes. Written with the mutex held.
  let urgent: UnsafeMutablePointer<Atomic<Bool>>
  /// How many events were taken from each lane: written by the one who takes, read by anybody.
  private let taken: UnsafeMutablePointer<Atomic<UInt64>>

  /// - Parameter owner: Whose mutex guards this one too: a worker sees both at one moment (D1).
  init(sharing owner: LockingInbox? = nil) {
    // What those who take look at for each event, and count; the mutex with what a post touches; the
    // rest. The first is apart by two lines, since processors fetch two at once.
    let hotOffset = 128 + SystemMutex.size
    let stateOffset = (hotOffset + 8 + LockingLanes.size + 63) & -64
    memory = .allocate(byteCount: stateOffset + MemoryLayout<State>.size, alignment: 128)
    urgent = memory.bindMemory(to: Atomic<Bool>.self, capacity: 1)
    urgent.initialize(to: Atomic(false))
    taken = (memory + 8).bindMemory(to: Atomic<UInt64>.self, capacity: Lane.count)
    for lane in 0..<Lane.count { (taken + lane).initialize(to: Atomic(0)) }
    mutex = owner?.mutex ?? SystemMutex(at: memory + 128)
    self.owner = owner
    hot = (memory + hotOffset).bindMemory(to: Hot.self, capacity: 1)
    hot.initialize(to: Hot())
    lanes = LockingLanes(at: memory + hotOffset + 8)
    state = (memory + stateOffset).bindMemory(to: State.self, capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    if owner == nil { mutex.end() }
    for block in lanes.takeMemory(over: 0) { block.deallocate() }
    state.deinitialize(count: 1)
    memory.deallocate()
  }

  @inline(__always)
  func withLock<R>(_ body: () -> R) -> R {
    mutex.lock()
    defer { mutex.unlock() }
    return body()
  }

  // MARK: Any thread

  override func post(_ run: LockingRun) -> Int? {
    mutex.lock()
    guard !hot.pointee.refuses else {
      mutex.unlock()
      return nil
    }
    let sleeper = append(run)
    mutex.unlock()
    sleeper?.wake()
    return 0
  }

  /// Puts records into their lane. Locked. Returns who is to be woken then, with the mutex open.
  @inline(__always)
  func append(_ run: LockingRun) -> LockingBed? {
    let lane = run.first.lane
    lanes[lane].pointee.append(run, isStack: LockingLane.isStack(lane))
    hot.pointee.occupied |= 1 << UInt16(truncatingIfNeeded: lane)
    if lane < hot.pointee.first, !hot.pointee.isTold { setUrgent() }
    return hot.pointee.hasSleepers ? nextSleeper() : nil
  }

  /// Has those who take look. Locked.
  private func setUrgent() {
    hot.pointee.isTold = true
    // Releasing: pairs with the consumer's look.
    urgent.pointee.store(true, ordering: .releasing)
  }

  /// What has come is seen; what comes from now on is to be told again. Locked.
  func didLook(stillUrgent: Bool) {
    hot.pointee.isTold = stillUrgent
    // Relaxed: the mutex orders the writers.
    urgent.pointee.store(stillUrgent, ordering: .relaxed)
  }

  /// Changes what those who take have to do, and wakes them.
  func tell(_ change: (inout State) -> Void) {
    var asleep: [LockingBed] = []
    withLock {
      change(&state.pointee)
      setUrgent()
      while let bed = nextSleeper() { asleep.append(bed) }
    }
    for bed in asleep { bed.wake() }
  }

  func close(drops: Bool) {
    tell { state in
      hot.pointee.refuses = true
      state.closes = state.closes || drops
    }
  }

  func addSubscription(
    _ target: AnyObject, drop: ((UnsafeMutableRawPointer) -> Void)?
  ) -> Subscription {
    let subscription = LockingSubscription(target, drop: drop, self)
    withLock { state.pointee.subscriptions.append(subscription) }
    return subscription.name
  }

  func addLatestSubscription(
    _ target: AnyObject, drop: ((UnsafeMutableRawPointer) -> Void)?
  ) -> Subscription {
    let latest = LockingLatest(target, drop: drop, self)
    let subscription = latest.subscription.name
    withLock { state.pointee.latests[subscription.pointer] = latest }
    return subscription
  }

  func depths() -> [Int] {
    let posted = withLock { (0..<Lane.count).map { lanes[$0].pointee.posted } }
    // Relaxed: a momentary figure. Read after `posted`, so it may be ahead of it by a little.
    return posted.enumerated().map { lane, posted in
      max(0, posted - Int(taken[lane].load(ordering: .relaxed)))
    }
  }

  func counts() -> (taken: UInt64, dropped: UInt64) {
    let dropped = withLock { state.pointee.dropped }
    let all = (0..<Lane.count).reduce(0) { $0 + taken[$1].load(ordering: .relaxed) }
    return (all - dropped, dropped)
  }

  // MARK: Who takes

  @inline(__always)
  func countTaken(_ lane: Int) {
    // Relaxed: a figure. Only the consumer writes it, or who has the mutex.
    taken[lane].store(taken[lane].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Takes the next record of a lane out, into memory of the caller's. Locked.
  func take(_ lane: Int, into buffer: inout LockingBuffer) -> LockingRecord {
    let record = buffer.copy(lanes[lane].pointee.take(isStack: LockingLane.isStack(lane)))
    if lanes[lane].pointee.isEmpty { hot.pointee.occupied &= ~(1 << UInt16(lane)) }
    return record
  }

  typealias Event = (event: LockingRecord?, slot: Unmanaged<LockingLatest>?)

  /// The event that a taken record is, or that it is the token of; nil if there is none any more.
  /// Locked. A token's slot is to be released when the event has ended.
  func event(
    of record: LockingRecord, into buffer: inout LockingBuffer, anyLane: Bool = false
  ) -> Event {
    guard record.isToken else {
      countTaken(record.lane)
      return (record, nil)
    }
    let slot = Unmanaged<LockingLatest>.fromOpaque(record.pointer)
    return (slot._withUnsafeGuaranteedRef { $0.take(record.lane, anyLane, into: &buffer) }, slot)
  }

  /// Has a bed woken when there is something to take. Locked, as the two below.
  func lieDown(_ bed: LockingBed) {
    state.pointee.asleep.append(bed)
    hot.pointee.hasSleepers = true
  }

  func getUp(_ bed: LockingBed) {
    state.pointee.asleep.removeAll { $0 === bed }
    hot.pointee.hasSleepers = !state.pointee.asleep.isEmpty
  }

  /// Who is to be woken, with the mutex open.
  func nextSleeper() -> LockingBed? {
    defer { hot.pointee.hasSleepers = !state.pointee.asleep.isEmpty }
    while let bed = state.pointee.asleep.popLast() {
      // It may have been woken by its other inbox.
      guard bed.isAsleep else { continue }
      bed.isAsleep = false
      return bed
    }
    return nil
  }

  /// Frees what a taken record stands for, and counts it. Not locked, since the end of a payload is
  /// user code.
  func drop(_ record: LockingRecord, _ buffer: inout LockingBuffer) {
    let (event, slot): Event = withLock {
      let found = self.event(of: record, into: &buffer, anyLane: true)
      if found.event != nil { state.pointee.dropped += 1 }
      return found
    }
    if let event {
      let subscription = event.header.pointee.subscription
      event.end(payloadMoved: false, subscription._withUnsafeGuaranteedRef { $0.drop })
    }
    slot?.release()
  }

  /// Frees what waits.
  func dropAll() {
    var buffer = LockingBuffer()
    while true {
      let record: LockingRecord? = withLock {
        hot.pointee.occupied == 0 ? nil : take(hot.pointee.firstLane, into: &buffer)
      }
      guard let record else { return }
      drop(record, &buffer)
    }
  }

  /// After the last event.
  func end() {
    close(drops: true)
    dropAll()
  }

  /// The end of its mailbox: what it held goes, though threads may remember it for a while.
  func forgetAll() {
    end()
    let (subscriptions, latests, blocks) = withLock {
      defer { (state.pointee.subscriptions, state.pointee.latests) = ([], [:]) }
      return (state.pointee.subscriptions, state.pointee.latests, lanes.takeMemory(over: 0))
    }
    for block in blocks { block.deallocate() }
    withExtendedLifetime((subscriptions, latests)) {}
  }
}

/// Where one consumer sleeps.
final class LockingBed: @unchecked Sendable {
  // `isAsleep` is guarded by the mutex of the inboxes, which share it if they are two.
  let monitor: Monitor
  private let pump: ConsumerPump?
  /// Nobody has woken it yet. Whoever clears it does, with the mutex open.
  var isAsleep = false

  init(_ mutex: SystemMutex, _ pump: ConsumerPump?) {
    monitor = Monitor(mutex)
    self.pump = pump
  }

  func wake() {
    if let pump { pump.wake() } else { monitor.wake() }
  }
}
