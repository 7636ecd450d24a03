// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What a mailbox of the locking core shares with its producers: ten lanes under a mutex.
///
/// It is apart from the mailbox since routes that threads remember keep it: after the end there is
/// nothing in it, and it refuses.
///
/// Who touches what: `state` with the mutex held, in which no code of the user's runs; `urgent` and
/// `taken` are atomic.
final class LockingInbox: LockingSink, @unchecked Sendable {
  struct State: ~Copyable {
    var lanes: LockingLanes
    var closes = false
    var isInterrupted = false
    /// Of a worker's: until `admit`.
    var isHeld = false
    /// Who sleeps and is to be woken, the one that came last at the end: its cache is warmest.
    private var asleep: [LockingBed] = []
    var dropped = 0
    var superseded: UInt64 = 0
    /// Tokens that were taken and stood for nothing,
    var empty = 0
    /// and those in each lane that do.
    var idle = [Int](repeating: 0, count: Lane.count)
    var subscriptions: [LockingSubscription] = []
    /// By their subscriptions.
    var latests: [UnsafeMutableRawPointer: LockingLatest] = [:]

    init(_ hot: UnsafeMutablePointer<LockingLanes.Hot>) {
      lanes = LockingLanes(hot)
    }

    var refuses: Bool {
      get { lanes.hot.pointee.refuses }
      nonmutating set { lanes.hot.pointee.refuses = newValue }
    }

    mutating func lieDown(_ bed: LockingBed) {
      asleep.append(bed)
      lanes.hot.pointee.hasSleepers = true
    }

    mutating func getUp(_ bed: LockingBed) {
      asleep.removeAll { $0 === bed }
      lanes.hot.pointee.hasSleepers = !asleep.isEmpty
    }

    /// Who is to be woken, with the mutex open.
    mutating func nextSleeper() -> LockingBed? {
      defer { lanes.hot.pointee.hasSleepers = !asleep.isEmpty }
      while let bed = asleep.popLast() {
        // It may have been woken by its other inbox.
        guard bed.isAsleep else { continue }
        bed.isAsleep = false
        return bed
      }
      return nil
    }
  }

  let mutex: SystemMutex
  /// Whose mutex it is, if it is not this one's.
  private let owner: LockingInbox?
  private let memory: UnsafeMutableRawPointer
  private let hot: UnsafeMutablePointer<LockingLanes.Hot>
  let state: UnsafeMutablePointer<State>
  /// Something has come that concerns who takes. Written with the mutex held.
  let urgent: UnsafeMutablePointer<Atomic<Bool>>
  /// How many records were taken from each lane: written by the one who takes, read by anybody.
  private let taken: UnsafeMutablePointer<Atomic<Int>>

  /// - Parameter owner: Whose mutex guards this one too: a worker sees both at one moment (D1).
  init(sharing owner: LockingInbox? = nil) {
    // The mutex with what a post touches; what those who take look at for each event, and count;
    // the rest. Apart by two lines, since processors fetch two at once.
    memory = .allocate(byteCount: 256 + MemoryLayout<State>.size, alignment: 128)
    hot = (memory + SystemMutex.size)
      .bindMemory(to: LockingLanes.Hot.self, capacity: 1)
    urgent = (memory + 128).bindMemory(to: Atomic<Bool>.self, capacity: 1)
    urgent.initialize(to: Atomic(false))
    taken = (memory + 136).bindMemory(to: Atomic<Int>.self, capacity: Lane.count)
    for lane in 0..<Lane.count { (taken + lane).initialize(to: Atomic(0)) }
    state = (memory + 256).bindMemory(to: State.self, capacity: 1)
    state.initialize(to: State(hot))
    mutex = owner?.mutex ?? SystemMutex(at: memory)
    self.owner = owner
  }

  deinit {
    if owner == nil { mutex.end() }
    state.deinitialize(count: 1)
    memory.deallocate()
  }

  @inline(__always)
  func withLock<R>(_ body: (inout State) -> R) -> R {
    mutex.lock()
    defer { mutex.unlock() }
    return body(&state.pointee)
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
    let lane = run.first.header.pointee.lane
    state.pointee.lanes.append(run, lane)
    if lane < hot.pointee.first, !hot.pointee.isTold { setUrgent() }
    return hot.pointee.hasSleepers ? state.pointee.nextSleeper() : nil
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
    withLock { state in
      change(&state)
      setUrgent()
      while let bed = state.nextSleeper() { asleep.append(bed) }
    }
    for bed in asleep { bed.wake() }
  }

  func close(drops: Bool) {
    tell { state in
      state.refuses = true
      state.closes = state.closes || drops
    }
  }

  func addSubscription(
    _ target: AnyObject, drop: ((UnsafeMutableRawPointer) -> Void)?
  ) -> Subscription {
    let subscription = LockingSubscription(target, drop: drop, self)
    withLock { $0.subscriptions.append(subscription) }
    return subscription.name
  }

  func addLatestSubscription(
    _ target: AnyObject, drop: ((UnsafeMutableRawPointer) -> Void)?
  ) -> Subscription {
    let latest = LockingLatest(target, drop: drop, self)
    let subscription = latest.subscription.name
    withLock { $0.latests[subscription.pointer] = latest }
    return subscription
  }

  func depths() -> [Int] {
    let posted = withLock { state in
      (0..<Lane.count).map { state.lanes.posted($0) - state.idle[$0] }
    }
    // Relaxed: a momentary figure. Read after `posted`, so it may be ahead of it by a little.
    return (0..<Lane.count).map { max(0, posted[$0] - taken[$0].load(ordering: .relaxed)) }
  }

  func counts() -> (taken: UInt64, dropped: UInt64) {
    let (dropped, empty) = withLock { ($0.dropped, $0.empty) }
    let all = (0..<Lane.count).reduce(0) { $0 + taken[$1].load(ordering: .relaxed) }
    return (UInt64(max(0, all - dropped - empty)), UInt64(dropped))
  }

  // MARK: Who takes

  @inline(__always)
  func countTaken(_ lane: Int) {
    // Relaxed: a figure. Only the consumer writes it, or who has the mutex.
    taken[lane].store(taken[lane].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Takes the next record of a lane out, into memory of the caller's. Locked.
  func take(_ lane: Int, into buffer: inout LockingBuffer) -> LockingRecord {
    countTaken(lane)
    return state.pointee.lanes.take(lane, into: &buffer)
  }

  /// The event that a taken record is, or that it is the token of; nil if there is none any more.
  /// Locked. A token's slot is to be released when the event has ended.
  func event(
    of record: LockingRecord, into buffer: inout LockingBuffer, anyLane: Bool = false
  ) -> (event: LockingRecord?, slot: Unmanaged<LockingLatest>?) {
    guard record.isToken else { return (record, nil) }
    let slot = Unmanaged<LockingLatest>.fromOpaque(record.pointer)
    let event = slot._withUnsafeGuaranteedRef {
      $0.take(record.lane, anyLane: anyLane, into: &buffer, &state.pointee)
    }
    if event == nil { state.pointee.empty += 1 }
    return (event, slot)
  }

  /// Frees what waits: one by one and outside the lock, since the end of a payload is user code.
  func dropAll() {
    var buffer = LockingBuffer()
    while true {
      typealias Next = (event: LockingRecord?, slot: Unmanaged<LockingLatest>?)
      let next = withLock { state -> Next? in
        let lane = state.lanes.firstLane
        guard lane < Lane.count else { return nil }
        let record = take(lane, into: &buffer)
        let next = event(of: record, into: &buffer, anyLane: true)
        if next.event != nil { state.dropped += 1 }
        return next
      }
      guard let next else { return }
      if let event = next.event {
        let subscription = event.header.pointee.subscription
        event.end(payloadMoved: false, subscription._withUnsafeGuaranteedRef { $0.drop })
      }
      next.slot?.release()
    }
  }

  /// Gives unused chunks back to the system, all but so many.
  func trim(to kept: Int) {
    var chunks = withLock { $0.lanes.free.removeAll(but: kept) }
    chunks.deallocateAll()
  }

  /// After the last event.
  func end() {
    close(drops: true)
    dropAll()
    trim(to: 0)
  }

  /// The end of its mailbox: what it held goes, though threads may remember it for a while.
  func forgetAll() {
    end()
    let held = withLock { state in
      defer { (state.subscriptions, state.latests) = ([], [:]) }
      return (state.subscriptions, state.latests)
    }
    withExtendedLifetime(held) {}
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

/// Memory for the record that a consumer works on.
struct LockingBuffer: ~Copyable {
  private var memory: UnsafeMutableRawPointer?
  private var size = 0

  deinit {
    memory?.deallocate()
  }

  mutating func copy(_ record: LockingRecord) -> LockingRecord {
    let length = record.length
    if length > size {
      memory?.deallocate()
      memory = .allocate(byteCount: length, alignment: 64)
      size = length
    }
    let place = memory.unsafelyUnwrapped
    place.copyMemory(from: record.address, byteCount: length)
    return LockingRecord(address: place)
  }
}
