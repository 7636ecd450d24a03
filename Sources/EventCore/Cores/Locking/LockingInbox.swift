// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The part of a mailbox that producers see: ten lanes under a mutex.
///
/// It is an object of its own because threads remember routes to it, and so keep it for a while after its
/// mailbox has ended. Then it is empty, and refuses what is posted.
///
/// Synchronization: `urgent` and `taken` are atomic. Everything else is touched with the mutex held, under
/// which no code of the user's runs.
final class LockingInbox: LockingSink, @unchecked Sendable {
  /// What a post reads and writes, beside the mutex and the lane that is used most: each further line would
  /// have to come from the consumer's cache.
  struct Hot {
    /// One bit for each lane that holds something.
    var occupied: UInt16 = 0
    /// A post to an earlier lane than this one makes the consumer look.
    var first = UInt8(Lane.count)
    /// Whether `urgent` is set.
    var isUrgent = false
    var refuses = false
    var hasSleepers = false

    /// The first lane that holds something, or `Lane.count`.
    var firstLane: Int { occupied == 0 ? Lane.count : occupied.trailingZeroBitCount }
  }

  struct State {
    var closes = false
    var isInterrupted = false
    /// Whether a worker has yet to be admitted (`admit`).
    var isHeld = false
    /// The consumers to wake. The one that went to sleep last is woken first, since its cache is the warmest.
    var sleepers: [LockingSleeper] = []
    var dropped: UInt64 = 0
    var superseded: UInt64 = 0
    var subscriptions: [LockingSubscription] = []
    /// By their subscriptions.
    var latests: [UnsafeMutableRawPointer: LockingLatest] = [:]
  }

  let mutex: SystemMutex
  /// The inbox whose mutex this one uses, if it has none of its own.
  private let owner: LockingInbox?
  private let memory: UnsafeMutableRawPointer
  let hot: UnsafeMutablePointer<Hot>
  let lanes: LockingLanes
  let state: UnsafeMutablePointer<State>
  /// Asks the consumer to look. Written with the mutex held.
  let urgent: UnsafeMutablePointer<Atomic<Bool>>
  /// How many events were taken from each lane. Written by the consumer or with the mutex held, read by any
  /// thread.
  private let taken: UnsafeMutablePointer<Atomic<UInt64>>

  /// - Parameter owner: Whose mutex guards this inbox too, so that a worker sees both at one moment (D1).
  init(sharing owner: LockingInbox? = nil) {
    // First what the consumer reads and counts for each event; then, two lines further on since processors
    // fetch lines in pairs, the mutex with what a post touches; then the rest.
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

  /// Puts records into their lane. Locked. Returns whom to wake after the unlock.
  @inline(__always)
  func append(_ run: LockingRun) -> LockingSleeper? {
    let lane = run.first.lane
    lanes[lane].pointee.append(run, isStack: LockingLane.isStack(lane))
    hot.pointee.occupied |= 1 << UInt16(truncatingIfNeeded: lane)
    if lane < hot.pointee.first, !hot.pointee.isUrgent { setUrgent() }
    return hot.pointee.hasSleepers ? nextSleeper() : nil
  }

  /// Asks the consumer to look. Locked.
  private func setUrgent() {
    hot.pointee.isUrgent = true
    // Releasing: pairs with the acquiring load in `LockingMailbox.nextStep`.
    urgent.pointee.store(true, ordering: .releasing)
  }

  /// The consumer has seen what has come, so that later posts ask again. Locked.
  func didLook(stillUrgent: Bool) {
    hot.pointee.isUrgent = stillUrgent
    // Relaxed: the mutex orders the writers.
    urgent.pointee.store(stillUrgent, ordering: .relaxed)
  }

  /// Changes what the consumers have to do, and wakes them all.
  func tell(_ change: (inout State) -> Void) {
    var sleepers: [LockingSleeper] = []
    withLock {
      change(&state.pointee)
      setUrgent()
      while let sleeper = nextSleeper() { sleepers.append(sleeper) }
    }
    for sleeper in sleepers { sleeper.wake() }
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
    // Relaxed: a momentary figure. Read after `posted`, so that it may be a little ahead of it.
    return posted.enumerated().map { lane, posted in
      max(0, posted - Int(taken[lane].load(ordering: .relaxed)))
    }
  }

  func counts() -> (taken: UInt64, dropped: UInt64) {
    let dropped = withLock { state.pointee.dropped }
    let all = (0..<Lane.count).reduce(0) { $0 + taken[$1].load(ordering: .relaxed) }
    return (all - dropped, dropped)
  }

  // MARK: The consumer

  @inline(__always)
  func countTaken(_ lane: Int) {
    // Relaxed: a figure, with one writer at a time.
    taken[lane].store(taken[lane].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Takes the next record of a lane out, into memory of the caller's. Locked.
  func take(_ lane: Int, into buffer: inout LockingBuffer) -> LockingRecord {
    let record = buffer.copy(lanes[lane].pointee.take(isStack: LockingLane.isStack(lane)))
    if lanes[lane].pointee.isEmpty { hot.pointee.occupied &= ~(1 << UInt16(lane)) }
    return record
  }

  typealias Event = (event: LockingRecord?, slot: Unmanaged<LockingLatest>?)

  /// The event of a record that was taken. If the record is a token, that is the event it stands for, or nil
  /// if that was taken before; the caller releases the slot once the event has ended. Locked.
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

  /// Has the next post wake a consumer. Locked, as the two below.
  func announceSleep(_ sleeper: LockingSleeper) {
    state.pointee.sleepers.append(sleeper)
    hot.pointee.hasSleepers = true
  }

  func withdrawSleep(_ sleeper: LockingSleeper) {
    state.pointee.sleepers.removeAll { $0 === sleeper }
    hot.pointee.hasSleepers = !state.pointee.sleepers.isEmpty
  }

  /// Takes the consumer out that is to be woken next, after the unlock.
  func nextSleeper() -> LockingSleeper? {
    defer { hot.pointee.hasSleepers = !state.pointee.sleepers.isEmpty }
    while let sleeper = state.pointee.sleepers.popLast() {
      // A worker may have been woken by its other inbox.
      guard sleeper.isAsleep else { continue }
      sleeper.isAsleep = false
      return sleeper
    }
    return nil
  }

  /// Ends the event of a record that was taken, and counts it. Not locked, since the end of a payload is
  /// code of the user's.
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

  /// Drops what waits.
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

  /// The end of its mailbox: lets go of all that it holds, though threads may remember it for a while.
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

/// A consumer that sleeps, or may do so.
final class LockingSleeper: @unchecked Sendable {
  // `isAsleep` is guarded by the mutex of its inboxes, of which a worker has two, with one mutex; the rest is
  // constant.
  let monitor: Monitor
  private let pump: ConsumerPump?
  /// Whether nobody has woken it yet. Whoever clears this wakes it after the unlock.
  var isAsleep = false

  init(_ mutex: SystemMutex, _ pump: ConsumerPump?) {
    monitor = Monitor(mutex)
    self.pump = pump
  }

  func wake() {
    if let pump { pump.wake() } else { monitor.wake() }
  }
}
