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

/// The mailbox in pure Swift: one inbox under a mutex, and ten lanes behind it that only the
/// consumer touches.
///
/// The consumer looks at `news` before each take, and empties the inbox into its lanes if it is
/// set. A post sets it before it returns, so that a take misses no post that happened before it
/// (D1).
///
/// Who touches what: `shared` with the monitor locked; `own` the consumer's thread only; `news` and
/// the counters are atomic.
final class LockingMailbox: MailboxCore, LockingSink, @unchecked Sendable {
  struct Shared {
    var head: UnsafeMutableRawPointer?
    var tail: UnsafeMutableRawPointer?
    var isAsleep = false
    var refuses = false
    var closes = false
    var isInterrupted = false
    var subscriptions: [LockingSubscription] = []
    /// By their subscriptions; see LockingLatest.swift.
    var latests: [UnsafeMutableRawPointer: LockingLatest] = [:]
    var superseded: UInt64 = 0
    /// Tokens that were taken and stood for nothing.
    var empty: UInt64 = 0
    var posted = [Int](repeating: 0, count: Lane.count)
    var dropped: UInt64 = 0
  }

  private struct Own: ~Copyable {
    var lanes = LockingLanes()
    var returns = LockingReturns()
    /// Events since the inbox was emptied last.
    var sinceLook = 0
    /// Whose event is being handled.
    var latest: Unmanaged<LockingLatestSlot>?
  }

  private let monitor = Monitor()
  private let shared: UnsafeMutablePointer<Shared>
  private let own: UnsafeMutablePointer<Own>
  /// How many events the consumer took from each lane: written by it, read by anybody.
  private let taken: UnsafeMutablePointer<Atomic<Int>>
  private let news = Atomic<Bool>(false)
  private let strategy: EventWaitStrategy
  /// Woken, with the monitor open, by whoever clears `isAsleep`; nil if the consumer has a thread.
  let pump: ConsumerPump?

  init(_ strategy: EventWaitStrategy, _ pump: ConsumerPump?) {
    self.strategy = strategy
    self.pump = pump
    shared = .allocate(capacity: 1)
    shared.initialize(to: Shared())
    // Armed: the first post has it pumped.
    shared.pointee.isAsleep = pump != nil
    own = .allocate(capacity: 1)
    own.initialize(to: Own())
    taken = .allocate(capacity: Lane.count)
    for lane in 0..<Lane.count {
      (taken + lane).initialize(to: Atomic(0))
    }
  }

  deinit {
    // Nobody else knows the mailbox any more: this thread is its consumer now.
    dropAll()
    own.deinitialize(count: 1)
    own.deallocate()
    taken.deinitialize(count: Lane.count)
    taken.deallocate()
    shared.deinitialize(count: 1)
    shared.deallocate()
  }

  @inline(__always)
  func withLock<R>(_ body: (inout Shared) -> R) -> R {
    monitor.lock()
    defer { monitor.unlock() }
    return body(&shared.pointee)
  }

  // MARK: Any thread

  func post(_ first: UnsafeMutableRawPointer, _ last: UnsafeMutableRawPointer, count: Int) -> Bool {
    let (accepted, wakes) = withLock { shared -> (Bool, Bool) in
      guard !shared.refuses else { return (false, false) }
      return (true, append(first, last, count: count, &shared))
    }
    if wakes { pump?.wake() }
    return accepted
  }

  /// Adds a chain. Locked. True if the caller has to wake the pump, with the monitor open.
  @inline(__always)
  func append(
    _ first: UnsafeMutableRawPointer, _ last: UnsafeMutableRawPointer, count: Int,
    _ shared: inout Shared
  ) -> Bool {
    if let tail = shared.tail {
      setEnvelopeNext(tail, first)
    } else {
      shared.head = first
    }
    shared.tail = last
    shared.posted[LockingEnvelope.lane(first)] += count
    return tell(&shared)
  }

  /// Has the consumer look. Locked. True if the caller has to wake the pump, with the monitor open.
  @inline(__always)
  private func tell(_ shared: inout Shared) -> Bool {
    // Pairs with `take` and `spin`; the data itself is ordered by the mutex.
    news.store(true, ordering: .releasing)
    guard shared.isAsleep else { return false }
    shared.isAsleep = false
    if pump != nil { return true }
    monitor.wake()
    return false
  }

  private func tell(_ change: (inout Shared) -> Void) {
    let wakes = withLock { shared in
      change(&shared)
      return tell(&shared)
    }
    if wakes { pump?.wake() }
  }

  func interrupt() {
    tell { $0.isInterrupted = true }
  }

  func close() {
    tell { shared in
      shared.refuses = true
      shared.closes = true
    }
  }

  func closeWhenEmpty() {
    tell { $0.refuses = true }
  }

  func addSubscription(_ receiver: Receiver) -> Subscription {
    let subscription = LockingSubscription(receiver, self)
    withLock { $0.subscriptions.append(subscription) }
    return Subscription(pointer: Unmanaged.passUnretained(subscription).toOpaque())
  }

  func depths() -> [Int] {
    let posted = withLock { $0.posted }
    // Relaxed: a momentary figure. Read after `posted`, so it may be ahead of it by a little.
    return (0..<Lane.count).map { max(0, posted[$0] - taken[$0].load(ordering: .relaxed)) }
  }

  func counts() -> (taken: UInt64, dropped: UInt64) {
    let (dropped, empty) = withLock { ($0.dropped, $0.empty) }
    let all = (0..<Lane.count).reduce(0) { $0 + taken[$1].load(ordering: .relaxed) }
    return (UInt64(all) - dropped - empty, dropped)
  }

  // MARK: The consumer

  private enum Step {
    case deliver(UnsafeMutableRawPointer)
    case control
    case wait
    case end
  }

  func run(_ consumer: Consumer) {
    var afterControl = false
    while true {
      let step = nextStep(afterControl: afterControl)
      afterControl = false
      switch step {
      case .deliver(let envelope):
        deliver(envelope)
      case .control:
        consumer.control()
        afterControl = true
      case .wait:
        consumer.idle()
        wait()
      case .end:
        dropAll()
        return
      }
    }
  }

  func pump(_ consumer: Consumer, limit: Int) -> PumpResult {
    var afterControl = false
    var left = limit
    while true {
      let step = nextStep(afterControl: afterControl)
      afterControl = false
      switch step {
      case .deliver(let envelope):
        deliver(envelope)
        left -= 1
        if left == 0 { return .more }
      case .control:
        consumer.control()
        afterControl = true
      case .wait:
        consumer.idle()
        own.pointee.returns.flush()
        // Armed under the lock, so that a post either comes before and is seen, or finds it armed.
        if withLock({ shared in
          shared.isAsleep = !news.load(ordering: .relaxed)
          return shared.isAsleep
        }) {
          return .dry
        }
      case .end:
        dropAll()
        return .ended
      }
    }
  }

  private func deliver(_ envelope: UnsafeMutableRawPointer) {
    let moved = LockingEnvelope.receiver(envelope)._withUnsafeGuaranteedRef {
      $0.deliver(
        envelopePayload(envelope), UnsafeRawPointer(envelope),
        owned: LockingEnvelope.ownsPayload(envelope))
    }
    LockingEnvelope.end(envelope, payloadMoved: moved, &own.pointee.returns)
  }

  /// `afterControl` puts a further interrupt off by one step, so that a stream of them holds up
  /// nothing.
  private func nextStep(afterControl: Bool) -> Step {
    var mustEnd = false
    // Pairs with `tell`.
    if news.load(ordering: .acquiring) {
      letThemGetAhead()
      let (chain, signal) = withLock { shared -> (UnsafeMutableRawPointer?, Step?) in
        if shared.isInterrupted, !afterControl {
          shared.isInterrupted = false
          return (nil, .control)
        }
        if shared.closes {
          return (nil, .end)
        }
        mustEnd = shared.refuses
        // A mailbox that refuses stays in this branch, to end when it runs dry.
        news.store(shared.refuses || shared.isInterrupted, ordering: .relaxed)
        defer { (shared.head, shared.tail) = (nil, nil) }
        return (shared.head, nil)
      }
      if let signal { return signal }
      deal(chain)
    }
    while let (envelope, lane) = own.pointee.lanes.takeFirst() {
      count(lane)
      own.pointee.sinceLook += 1
      guard let slot = LockingLatestSlot.of(envelope) else { return .deliver(envelope) }
      if let event = take(slot, lane) { return .deliver(event) }
      // What was posted meanwhile may come before the lane that is next.
      if news.load(ordering: .acquiring) { return nextStep(afterControl: afterControl) }
    }
    return mustEnd ? .end : .wait
  }

  /// Dry, and the last look brought little: taking the lock from the producers for each event would
  /// cost both sides more than half a microsecond's wait.
  private func letThemGetAhead() {
    if own.pointee.lanes.occupied == 0, own.pointee.sinceLook < 16, strategy != .spin, pump == nil {
      let end = monotonicNanoseconds() + 500
      while monotonicNanoseconds() < end {}
    }
    own.pointee.sinceLook = 0
  }

  /// The event for a token that was taken, if there is one. The slot stays until the next.
  private func take(
    _ slot: Unmanaged<LockingLatestSlot>, _ lane: Int
  ) -> UnsafeMutableRawPointer? {
    own.pointee.latest?.release()
    own.pointee.latest = slot
    return slot._withUnsafeGuaranteedRef { slot in
      withLock { shared in
        let event = slot.take(lane, anyLane: false)
        shared.empty += event == nil ? 1 : 0
        return event
      }
    }
  }

  private func deal(_ chain: UnsafeMutableRawPointer?) {
    var next = chain
    while let envelope = next {
      next = envelopeNext(envelope)
      own.pointee.lanes.put(envelope)
    }
  }

  @inline(__always)
  private func count(_ lane: Int) {
    // Relaxed: only the consumer writes it.
    taken[lane].store(taken[lane].load(ordering: .relaxed) + 1, ordering: .relaxed)
  }

  /// Frees what waits, outside the lock: the end of a payload is user code.
  private func dropAll() {
    deal(
      withLock { shared in
        defer { (shared.head, shared.tail) = (nil, nil) }
        return shared.head
      })
    while let (envelope, lane) = own.pointee.lanes.takeFirst() {
      count(lane)
      guard let slot = LockingLatestSlot.of(envelope) else {
        withLock { $0.dropped += 1 }
        LockingEnvelope.end(envelope, payloadMoved: false, &own.pointee.returns)
        continue
      }
      let event = withLock { shared in
        let event = slot._withUnsafeGuaranteedRef { $0.take(lane, anyLane: true) }
        shared.empty += event == nil ? 1 : 0
        shared.dropped += event == nil ? 0 : 1
        return event
      }
      if let event {
        LockingEnvelope.end(event, payloadMoved: false, &own.pointee.returns)
      }
      slot.release()
    }
    own.pointee.latest?.release()
    own.pointee.latest = nil
  }

  private func wait() {
    if spin() { return }
    own.pointee.returns.flush()
    withLock { shared in
      while !news.load(ordering: .relaxed) {
        shared.isAsleep = true
        _ = monitor.wait(until: nil)
      }
      shared.isAsleep = false
    }
  }

  /// Looks for as long as the strategy says. True if there is news.
  private func spin() -> Bool {
    let limit = strategy.spinNanoseconds
    let start = limit == nil ? 0 : monotonicNanoseconds()
    var turns = 0
    while true {
      // Pairs with `tell`. Only a hint: `nextStep` looks under the lock.
      if news.load(ordering: .acquiring) { return true }
      turns += 1
      if strategy == .yield {
        sched_yield()
      } else if turns % 64 == 0, let limit, monotonicNanoseconds() - start >= limit {
        return false
      }
    }
  }
}
