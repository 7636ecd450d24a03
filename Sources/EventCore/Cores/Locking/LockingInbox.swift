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
  /// What a post reads and writes. It lies beside the mutex, on one cache line with the start of the lane that
  /// is used most: each further line would have to come from the consumer's cache.
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

  let mutex: SystemMutex
  /// The inbox whose mutex this one uses, if it has none of its own.
  private let owner: LockingInbox?
  private let memory: UnsafeMutableRawPointer
  let hot: UnsafeMutablePointer<Hot>
  let lanes: LockingLanes
  /// The same lanes; but if what waits may be displaced, those of what has no place, which comes first on both cores.
  let apart: LockingLanes
  /// Asks the consumer to look. Written with the mutex held.
  let urgent: UnsafeMutablePointer<Atomic<Bool>>
  /// How many events were taken from each lane. Written by the consumer or with the mutex held, read by any thread.
  let taken: UnsafeMutablePointer<Atomic<UInt64>>

  var closes = false
  var isInterrupted = false
  /// Whether a worker has yet to be admitted.
  var isHeld = false
  /// Superseded events of all subscriptions that there ever were.
  var superseded: UInt64 = 0
  var dropped: UInt64 = 0
  /// By their addresses.
  var subscriptions: [UnsafeMutableRawPointer: LockingSubscription] = [:]
  /// The consumers to wake. The one that went to sleep last is woken first, since its cache is the warmest.
  var sleepers: [LockingSleeper] = [] {
    didSet { hot.pointee.hasSleepers = !sleepers.isEmpty }
  }

  /// How many records may wait; nil: any number.
  let bound: LockingBound?

  /// - Parameter owner: Whose mutex guards this inbox too, so that a worker sees both at one moment (D1).
  init(sharing owner: LockingInbox? = nil, _ capacity: EventMailboxCapacity = .unbounded) {
    // First what the consumer reads and counts for each event. Then, two lines further on since processors
    // fetch lines in pairs, the mutex and what a post touches.
    let hotOffset = 128 + SystemMutex.size
    let sets = capacity.policy == .dropOldest ? 2 : 1
    memory = .allocate(byteCount: hotOffset + 8 + sets * LockingLanes.size, alignment: 128)
    urgent = memory.bindMemory(to: Atomic<Bool>.self, capacity: 1)
    urgent.initialize(to: Atomic(false))
    taken = (memory + 8).bindMemory(to: Atomic<UInt64>.self, capacity: Lane.count)
    for lane in 0..<Lane.count { (taken + lane).initialize(to: Atomic(0)) }
    mutex = owner?.mutex ?? SystemMutex(at: memory + 128)
    self.owner = owner
    let givenBack = (memory + 8 * (Lane.count + 1)).bindMemory(to: Atomic<Int>.self, capacity: 1)
    givenBack.initialize(to: Atomic(0))
    bound = LockingBound(capacity, mutex, givenBack: givenBack)
    hot = (memory + hotOffset).bindMemory(to: Hot.self, capacity: 1)
    hot.initialize(to: Hot())
    lanes = LockingLanes(at: memory + hotOffset + 8)
    apart = bound?.displaces == true ? LockingLanes(at: memory + hotOffset + 8 + LockingLanes.size) : lanes
  }

  deinit {
    if owner == nil { mutex.end() }
    for block in takeMemory(over: 0) { block.deallocate() }
    memory.deallocate()
  }

  @inline(__always)
  func withLock<R>(_ body: () -> R) -> R {
    mutex.lock()
    defer { mutex.unlock() }
    return body()
  }

  // MARK: Posting, from any thread

  /// The first step of posting one event: makes its record where it is to wait, and returns where the payload
  /// goes. Until `finishPost`, the mutex stays locked. Nil, and unlocked, if the inbox refuses, or is full: what
  /// becomes of the event is then decided with the event at hand.
  @inline(__always)
  func beginPost(
    _ entry: LockingSnapshot.Entry, lane: UInt8, length: Int, _ note: Instruments.Note
  ) -> UnsafeMutableRawPointer? {
    mutex.lock()
    guard !hot.pointee.refuses, bound?.accept(entry.subscription) != false else {
      mutex.unlock()
      return nil
    }
    lanes[Int(lane)].pointee.posted &+= 1
    let isApart = bound?.displaces == true && entry.subscription._withUnsafeGuaranteedRef { $0.isUnbounded }
    let record = reserve(length, in: isApart ? apart : lanes, Int(lane))
    // The link tells the second step the inbox.
    record.initialize(
      entry.subscription, entry.generation | note.mark, link: Unmanaged.passUnretained(self).toOpaque(),
      lane: lane, length: length, time: note.time)
    return record.address + EnvelopeLayout.payload
  }

  @inline(__always)
  func finishPost(_ record: LockingRecord) {
    let sleeper = didPost(to: record.lane)
    mutex.unlock()
    sleeper?.wake()
  }

  /// Runs `body` under the lock, and wakes whom it returns. Not if the inbox refuses: then the subscriptions of records
  /// may be gone.
  @inline(__always)
  func whileOpen(_ body: () -> (LockingFate, LockingSleeper?)) -> LockingFate {
    mutex.lock()
    let (fate, sleeper) = hot.pointee.refuses ? (.ended, nil) : body()
    mutex.unlock()
    sleeper?.wake()
    return fate
  }

  override func post(_ run: LockingRun, _ post: inout LockingPost) {
    guard bound == nil, whileOpen({ (.accepted, put(run)) }) == .accepted else { return super.post(run, &post) }
    post.outcome.accepted += run.count
  }

  override func place(_ record: LockingRecord, _ post: inout LockingPost) -> LockingFate {
    var victim: LockingRecord?
    let fate = whileOpen {
      var fate = LockingFate.accepted
      if let bound, record.hasPlace {
        fate = findPlace(for: record, bound, &post, &victim)
        bound.count(fate)
      }
      let isHere = fate == .accepted || fate == .displacing
      return (fate, isHere ? put(LockingRun(first: record, count: 1)) : nil)
    }
    // Of a batch that has begun the rest is refused, as on the other core.
    if fate == .ended, post.hasBegun {
      withLock { bound?.count(.refused) }
      return .refused
    }
    if let victim {
      victim.endUnhandled()
      victim.header.pointee.subscription.release()
      victim.address.deallocate()
    }
    return fate
  }

  /// Puts records into their lane. Locked. Returns whom to wake after the unlock.
  private func put(_ run: LockingRun) -> LockingSleeper? {
    let lane = run.first.lane
    lanes[lane].pointee.posted &+= UInt32(truncatingIfNeeded: run.count)
    let places = bound == nil || run.first.hasPlace ? lanes : apart
    places[lane].pointee.append(run, isStack: LockingLane.isStack(lane))
    return didPost(to: lane)
  }

  /// Makes room for a record in a lane. Locked, as the next one.
  @inline(__always)
  func reserve(_ length: Int, in lanes: LockingLanes, _ lane: Int) -> LockingRecord {
    LockingRecord(address: lanes[lane].pointee.reserve(length, isStack: LockingLane.isStack(lane)))
  }

  /// Has the consumer see what was put into a lane. Returns whom to wake after the unlock.
  @inline(__always)
  func didPost(to lane: Int) -> LockingSleeper? {
    hot.pointee.occupied |= 1 << UInt16(truncatingIfNeeded: lane)
    if lane < hot.pointee.first, !hot.pointee.isUrgent { setUrgent(true) }
    return hot.pointee.hasSleepers ? nextSleeper() : nil
  }

  override func lookAgain() { tell { isInterrupted = true } }

  /// Asks the consumer to look, or notes that it has looked. Locked.
  func setUrgent(_ isUrgent: Bool) {
    hot.pointee.isUrgent = isUrgent
    // Releasing: pairs with the acquiring load in `LockingMailbox.nextStep`.
    urgent.pointee.store(isUrgent, ordering: .releasing)
  }

  /// Changes what the consumers have to do, and wakes them all.
  func tell(_ change: () -> Void) {
    var woken: [LockingSleeper] = []
    withLock {
      change()
      setUrgent(true)
      while let sleeper = nextSleeper() { woken.append(sleeper) }
    }
    for sleeper in woken { sleeper.wake() }
  }

  func close(drops: Bool) {
    tell {
      bound?.wakeAll()
      hot.pointee.refuses = true
      closes = closes || drops
    }
  }

  // MARK: The consumer

  @inline(__always)
  func countTaken(_ lane: Int) {
    // Relaxed: a figure, with one writer at a time.
    taken[lane].store(taken[lane].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Takes the next record of the first lane that holds one, into memory of the caller's. Locked.
  func take(into buffer: inout LockingLane) -> LockingRecord {
    let lane = hot.pointee.firstLane
    let record = buffer.hold(next(lane).pointee.take())
    bound?.didTake(record)
    didTake(from: lane)
    return record
  }

  typealias Event = (record: LockingRecord?, token: Unmanaged<LockingSubscription>?)

  /// The event of a record that was taken. If the record is a token, that is the event it stands for, or nil
  /// if that was taken before; the caller releases the second part once the event has ended. Locked.
  func event(
    of record: LockingRecord, into buffer: inout LockingLane, anyLane: Bool = false
  ) -> Event {
    guard record.isToken else {
      countTaken(record.lane)
      return (record, nil)
    }
    let token = record.header.pointee.subscription.retain()
    let event = token._withUnsafeGuaranteedRef {
      // Not nil: only such a subscription posts tokens.
      $0.latest.unsafelyUnwrapped.take(record, anyLane, into: &buffer)
    }
    return (event, token)
  }

  /// Takes the next event. Locked.
  func takeEvent(into buffer: inout LockingLane) -> Event { event(of: take(into: &buffer), into: &buffer) }

  /// Takes the consumer out that is to be woken next, after the unlock. Locked.
  func nextSleeper() -> LockingSleeper? {
    let sleeper = sleepers.last
    sleeper?.withdraw()
    return sleeper
  }

  // MARK: The end

  /// Ends the event of a record that was taken, and counts it. Not locked, since the end of a payload is code
  /// of the user's.
  func drop(_ record: LockingRecord, _ buffer: inout LockingLane) {
    let event: Event = withLock {
      let event = self.event(of: record, into: &buffer, anyLane: true)
      if event.record != nil { dropped += 1 }
      return event
    }
    event.record?.endUnhandled()
    event.token?.release()
  }

  /// Drops what waits.
  func dropAll() {
    var buffer = LockingLane()
    defer { buffer.takeMemory(over: 0)?.deallocate() }
    while let record = withLock({ hot.pointee.occupied == 0 ? nil : take(into: &buffer) }) { drop(record, &buffer) }
  }

  /// Frees unused memory, but for `kept` bytes of each lane. Not locked.
  func trim(to kept: Int) {
    for block in withLock({ takeMemory(over: kept) }) { block.deallocate() }
  }

  /// The end of its mailbox: lets go of all that it holds, though threads may remember it for a while.
  func forgetAll() {
    close(drops: true)
    dropAll()
    trim(to: 0)
    let subscriptions = withLock {
      defer { self.subscriptions = [:] }
      return self.subscriptions
    }
    for subscription in subscriptions.values { subscription.latest?.letKeysGo() }
  }
}
