// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The mailbox in pure Swift: an inbox under a mutex, from which the consumer takes over the whole queue that
/// is next.
///
/// It works that queue off without the mutex until the queue is dry or `urgent` is set. A post that comes
/// before what the consumer works on sets `urgent` before it returns (D1). From a stack the consumer takes
/// one record at a time, since each post comes before the others (D3).
///
/// A worker takes from its shared mailbox too. Both inboxes have one mutex, and a worker always takes one
/// record at a time; so does the consumer of a mailbox whose producers displace what waits.
///
/// Synchronization: only the consumer's thread touches `own` and `lanes`. One file, though long: taking,
/// waiting and ending all rest on these two.
final class LockingMailbox: MailboxCore, LockingInboxOwner, @unchecked Sendable {
  private struct Own {
    /// The queue of `lanes` that it works on. Otherwise 0, which is always empty there, so that the next step
    /// looks.
    var lane = 0
    /// Events since the last look.
    var sinceLook = 0
    /// Whether the last look was into the shared mailbox, too.
    var looksAtShared = false
    /// Whether a burst has waited in a lane since the mailbox ran dry the last time, and when the last burst was over.
    var sawBurst = false
    var quietSince: UInt64 = 0
  }

  let inbox: LockingInbox
  /// The shared mailbox of a worker, which keeps it alive, and its inbox; nil for others.
  private let sharedMailbox: LockingSharedMailbox?
  private let shared: LockingInbox?
  private let own: UnsafeMutablePointer<Own>
  /// The queues that the consumer has taken over. What is in one of them came before all that is in the same
  /// lane of the inbox.
  private let lanes: LockingLanes
  /// Where a record goes that is taken from the inbox alone. Since stacks are not taken over, the lane of one
  /// is free for that.
  private var buffer: UnsafeMutablePointer<LockingLane> { lanes[0] }
  private let sleeper: LockingSleeper
  private let strategy: EventWaitStrategy

  /// How many bytes an idle mailbox keeps in a lane, and for how long it keeps more than that after a burst,
  /// since the next burst may come soon.
  private static let keptBytes = 32_768
  private static let keptNanoseconds: UInt64 = 1_000_000_000

  init(
    _ strategy: EventWaitStrategy, _ capacity: EventMailboxCapacity, _ pump: ConsumerPump?,
    of shared: LockingSharedMailbox? = nil
  ) {
    self.strategy = strategy
    sharedMailbox = shared
    self.shared = shared?.inbox
    inbox = LockingInbox(sharing: shared?.inbox, capacity)
    inbox.isHeld = shared != nil
    sleeper = LockingSleeper(inbox, shared?.inbox, pump)
    // Apart from this object, which other threads read: both are written for each event.
    let memory = UnsafeMutableRawPointer.allocate(byteCount: 64 + LockingLanes.size, alignment: 128)
    own = memory.bindMemory(to: Own.self, capacity: 1)
    own.initialize(to: Own())
    lanes = LockingLanes(at: memory + 64)
    // Armed: the first post has it pumped.
    if pump != nil { sleeper.announce(toShared: false) }
  }

  deinit {
    // Nobody else knows the mailbox any more: this thread is its consumer now.
    end()
    inbox.forgetAll()
    own.deallocate()
  }

  // MARK: Any thread

  func admit() { inbox.tell { inbox.isHeld = false } }
  func interrupt() { inbox.tell { inbox.isInterrupted = true } }

  // MARK: The consumer

  func run(_ consumer: Consumer) {
    while pump(consumer, limit: .max, until: .max) != .ended {}
  }

  func pump(_ consumer: Consumer, limit: Int, until deadline: UInt64) -> PumpResult {
    _ = enter()
    defer { leave(nil) }
    var stretch = LockingStretch(limit: limit, until: deadline)
    var afterControl = false
    while stretch.mayBegin() {
      let step = nextStep(afterControl)
      afterControl = false
      switch step {
      case .event(let event):
        if let record = event.record {
          deliver(record, consumer, &stretch)
          stretch.didHandle()
        }
        event.token?.release()
      case .control:
        consumer.control()
        afterControl = true
      case .dry:
        consumer.idle()
        if sleeper.pump != nil {
          if arm() { return .dry }
        } else if consumer.pump == nil {
          wait()
        } else {
          // A worker that is polled.
          trimAfterBurst(comesBack: true)
          return .dry
        }
      case .end:
        end()
        return .ended
      }
    }
    return .more
  }

  // Its lanes and its inbox have one mutex, which costs the consumer little while nobody else posts. But what it
  // posts to a full inbox of its own must not wait. A worker is a consumer of its shared mailbox's.
  func enter() -> OpaquePointer? {
    if let bound { inbox.withLock { bound.consumers.append(currentThreadNumber()) } }
    return nil
  }

  func leave(_ entered: OpaquePointer?) {
    guard let bound else { return }
    let thread = currentThreadNumber()
    inbox.withLock {
      if let index = bound.consumers.lastIndex(of: thread) { bound.consumers.remove(at: index) }
      // The next run may take long to come.
      _ = bound.wake(for: 1)
    }
  }

  private var bound: LockingBound? { inbox.bound ?? shared?.bound }

  private enum Step {
    case event(LockingInbox.Event)
    case control
    case dry
    case end
  }

  @inline(__always)
  private func deliver(_ record: LockingRecord, _ consumer: Consumer, _ stretch: inout LockingStretch) {
    record.header.pointee.subscription._withUnsafeGuaranteedRef { subscription in
      if !subscription.isShared { stretch.meet(subscription) }
      let payload = envelopePayload(record.address)
      let moved =
        subscription.isShared
        ? subscription.entry._withUnsafeGuaranteedRef {
          consumer.deliverShared($0, payload, record.address, owned: true)
        }
        : subscription.receiver._withUnsafeGuaranteedRef {
          $0.deliver(payload, UnsafeRawPointer(record.address), owned: true)
        }
      record.end(payloadMoved: moved, subscription.drop)
    }
  }

  /// `afterControl` puts a further interrupt off by one step, so that a stream of them holds up nothing.
  @inline(__always)
  private func nextStep(_ afterControl: Bool) -> Step {
    let lane = lanes[own.pointee.lane]
    // Acquiring: pairs with the releasing store in `LockingInbox.setUrgent`. What a token stands for may be
    // newer than an urgent event that is posted now, so that the lane is chosen anew, under the lock (D1).
    guard !lane.pointee.isEmpty, !inbox.urgent.pointee.load(ordering: .acquiring),
      !lane.pointee.next.isToken
    else { return look(afterControl) }
    own.pointee.sinceLook &+= 1
    inbox.countTaken(own.pointee.lane)
    return .event((take(from: lane), nil))
  }

  /// Takes the next record of a lane that was taken over.
  @inline(__always)
  private func take(from lane: UnsafeMutablePointer<LockingLane>) -> LockingRecord {
    let record = lane.pointee.take()
    inbox.bound?.didTake(record)
    return record
  }

  @inline(never)
  private func look(_ afterControl: Bool) -> Step {
    lockForLook()
    let step = lockedLook(afterControl)
    if let bound {
      // Until they are woken, each step looks. Before it runs dry, one place is enough.
      var isDry = false
      if case .dry = step { isDry = true }
      if bound.wake(for: isDry ? 1 : LockingBound.places), !isDry { inbox.setUrgent(true) }
    }
    // If something is left in the shared mailbox, another worker has to look. A post there wakes one worker
    // alone, which may be this one, although it now has something else to do.
    let next = shared.flatMap { $0.hot.pointee.occupied == 0 ? nil : $0.nextSleeper() }
    inbox.mutex.unlock()
    next?.wake()
    return step
  }

  private func lockedLook(_ afterControl: Bool) -> Step {
    let hot = inbox.hot
    inbox.setUrgent(inbox.isInterrupted)
    // A worker looks into its shared mailbox once it is admitted. When its own one closes, it leaves what is
    // in the shared one to the others.
    let shared = inbox.isHeld ? nil : shared
    own.pointee.looksAtShared = shared != nil && !hot.pointee.refuses
    if inbox.isInterrupted, !afterControl {
      inbox.isInterrupted = false
      return .control
    }
    if inbox.closes || shared?.closes == true { return .end }
    let (first, firstQueue) = (hot.pointee.firstLane, Int(Lane.firstQueue))
    let lane = (firstQueue..<max(first, firstQueue)).first { !lanes[$0].pointee.isEmpty } ?? first
    own.pointee.lane = 0
    hot.pointee.first = UInt8(Lane.count)
    if own.pointee.looksAtShared, let shared {
      let sharedLane = shared.hot.pointee.firstLane
      if sharedLane < lane { noteBurst(shared.next(sharedLane)) }
      let event = sharedLane < lane ? shared.takeEvent(into: &buffer.pointee) : nil
      // A worker that spins goes on to look as long as there is something, and all have to see that it refuses. An
      // interrupt of it is for nobody.
      shared.setUrgent(shared.hot.pointee.occupied != 0 || shared.hot.pointee.refuses)
      if let event { return .event(event) }
    }
    guard lane < Lane.count else {
      guard hot.pointee.refuses || shared?.hot.pointee.refuses == true else { return .dry }
      // A worker's own is open until here: what it accepts after this look would be dropped.
      hot.pointee.refuses = true
      return .end
    }
    noteBurst(inbox.next(lane))
    if self.shared != nil || inbox.bound?.displaces == true || LockingLane.isStack(lane) {
      return .event(inbox.takeEvent(into: &buffer.pointee))
    }
    if lanes[lane].pointee.isEmpty {
      lanes[lane].pointee.takeAll(of: &inbox.lanes[lane].pointee)
      hot.pointee.occupied &= ~(1 << UInt16(lane))
    }
    own.pointee.lane = lane
    hot.pointee.first = UInt8(lane)
    own.pointee.sinceLook = 1
    return .event(inbox.event(of: take(from: lanes[lane]), into: &buffer.pointee))
  }

  /// Half of what is kept makes a burst, since a lane grows to twice what waits.
  private func noteBurst(_ lane: UnsafeMutablePointer<LockingLane>) {
    if lane.pointee.used > Self.keptBytes / 2 { own.pointee.sawBurst = true }
  }

  /// Locks the mutex, and waits for a microsecond first if a producer holds it, or if the queue is dry and the
  /// last look brought little. Whoever takes the lock takes it, and the lines that it guards, from the
  /// producers: for a few events, that costs both sides more than this wait.
  private func lockForLook() {
    let isThin = lanes[own.pointee.lane].pointee.isEmpty && (1..<64).contains(own.pointee.sinceLook)
    own.pointee.sinceLook = 0
    if !isThin, inbox.mutex.lockIfAvailable() { return }
    if strategy != .spin, sleeper.pump == nil {
      let end = monotonicNanoseconds() + 1_000
      while monotonicNanoseconds() < end {}
    }
    inbox.mutex.lock()
  }

  private func end() {
    inbox.withLock { sleeper.withdraw() }
    inbox.close(drops: true)
    for lane in 0..<Lane.count {
      while !lanes[lane].pointee.isEmpty {
        inbox.drop(take(from: lanes[lane]), &buffer.pointee)
      }
    }
    if let shared, shared.withLock({ shared.closes }) { shared.dropAll() }
    inbox.dropAll()
    trim(to: 0)
  }

  // MARK: Waiting

  /// Whether there is something to do. Relaxed: a hint, or with the mutex held, which orders it.
  private var hasNews: Bool {
    inbox.urgent.pointee.load(ordering: .relaxed)
      || own.pointee.looksAtShared && shared.unsafelyUnwrapped.urgent.pointee.load(ordering: .relaxed)
  }

  /// Has the next post wake the pump. False if there is something to do already.
  private func arm() -> Bool {
    // A loop runs its pump again and again. Others may never be run again.
    trimAfterBurst(comesBack: sleeper.pump?.driver.isLoop == true)
    // Under the lock, so that a post either comes before and is seen, or finds it armed.
    return inbox.withLock {
      sleeper.withdraw()
      guard !hasNews else { return false }
      sleeper.announce(toShared: own.pointee.looksAtShared)
      return true
    }
  }

  /// Spins and sleeps, as the strategy says, until there is something to do.
  private func wait() {
    if strategy.spinNanoseconds == nil { trimAfterBurst(comesBack: true) }
    if spin() { return }
    let now = monotonicNanoseconds()
    if own.pointee.sawBurst { own.pointee.quietSince = now }
    own.pointee.sawBurst = false
    // A burst of a shared mailbox may have been another worker's.
    var deadline: UInt64? = (shared == nil ? own.pointee.quietSince : now) + Self.keptNanoseconds
    inbox.mutex.lock()
    while !hasNews {
      sleeper.announce(toShared: own.pointee.looksAtShared)
      let isInTime = sleeper.monitor.wait(until: holdsMuch ? deadline : nil)
      sleeper.withdraw()
      guard !isInTime else { continue }
      inbox.mutex.unlock()
      trim(to: Self.keptBytes)
      // Once: what is left is in use, and may be so for as long as this consumer sleeps.
      deadline = nil
      inbox.mutex.lock()
    }
    inbox.mutex.unlock()
  }

  /// Whether a lane has more memory than an idle mailbox keeps. Locked.
  private var holdsMuch: Bool {
    lanes.contains(over: Self.keptBytes) || inbox.contains(over: Self.keptBytes)
      || shared?.contains(over: Self.keptBytes) == true
  }

  /// Frees what a burst has left: at once, or, if the consumer comes back to see to it, when a second has passed
  /// without another burst, so that a load of bursts allocates nothing once warm (D5).
  private func trimAfterBurst(comesBack: Bool) {
    guard inbox.withLock({ holdsMuch }) else { return }
    if comesBack {
      let now = monotonicNanoseconds()
      if own.pointee.sawBurst { own.pointee.quietSince = now }
      own.pointee.sawBurst = false
      guard now - own.pointee.quietSince >= Self.keptNanoseconds else { return }
    }
    trim(to: Self.keptBytes)
  }

  /// Frees unused memory, but for `kept` bytes of each lane. A worker frees that of its shared mailbox, too.
  private func trim(to kept: Int) {
    for block in lanes.takeMemory(over: kept) { block.deallocate() }
    inbox.trim(to: kept)
    shared?.trim(to: kept)
  }

  /// Looks for as long as the strategy says. Returns true once there is something to do.
  private func spin() -> Bool {
    let limit = strategy.spinNanoseconds
    let start = limit == nil ? 0 : monotonicNanoseconds()
    var turns = 0
    while !hasNews {
      turns += 1
      // A turn that yields may take milliseconds.
      if limit == nil, turns % (strategy == .yield ? 256 : 65_536) == 0 { trimAfterBurst(comesBack: true) }
      if strategy == .yield {
        yieldThread()
      } else if turns % 64 == 0, let limit, monotonicNanoseconds() - start >= limit {
        return false
      }
    }
    return true
  }
}
