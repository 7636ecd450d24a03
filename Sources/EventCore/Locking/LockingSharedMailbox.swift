// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The shared mailbox in pure Swift: ten lanes under one mutex, which also guards the lanes of its
/// workers' own mailboxes, so that a take sees both at one moment (D1).
///
/// Who touches what: everything with the mutex held, but for `news`, which is atomic.
///
/// Lock order: `monitor`, then a worker's bed. Nobody waits or runs user code with either held.
final class LockingSharedMailbox: SharedMailboxCore, LockingSink, @unchecked Sendable {
  struct State: ~Copyable {
    var lanes = LockingLanes()
    var depths = [Int](repeating: 0, count: Lane.count)
    /// The workers that sleep or are about to, the one that came last at the end: its cache is
    /// warmest.
    var asleep: [LockingWorker] = []
    /// The same of workers that are held: no post is to rely on them.
    var asleepHeld: [LockingWorker] = []
    var subscriptions: [LockingSubscription] = []
    /// By their subscriptions; see LockingSharedLatest.swift.
    var latests: [UnsafeMutableRawPointer: LockingLatest] = [:]
    var superseded: UInt64 = 0
    var refuses = false
    var closes = false
    var taken: UInt64 = 0
    var dropped: UInt64 = 0
  }

  private let monitor = Monitor()
  private let state: UnsafeMutablePointer<State>
  /// Changes with every post and every request, to either kind of mailbox: what a spinning worker
  /// watches.
  let news = Atomic<UInt64>(0)

  init() {
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    // Workers retain their shared mailbox: there is none left.
    dropAll()
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Runs `body` with the mutex held, then wakes the worker that it returns.
  @inline(__always)
  func withLock(wake body: (inout State) -> LockingWorker?) {
    monitor.lock()
    let worker = body(&state.pointee)
    // Pairs with the spinning workers' load; only a hint, since they look again under the lock.
    news.wrappingAdd(1, ordering: .releasing)
    monitor.unlock()
    worker?.bed.wake()
  }

  @inline(__always)
  func withLock<R>(_ body: (inout State) -> R) -> R {
    monitor.lock()
    defer { monitor.unlock() }
    return body(&state.pointee)
  }

  // MARK: Any thread

  func post(_ first: UnsafeMutableRawPointer, _ last: UnsafeMutableRawPointer, count: Int) -> Bool {
    var isAccepted = false
    withLock { state -> LockingWorker? in
      guard !state.refuses else { return nil }
      isAccepted = true
      state.depths[LockingEnvelope.lane(first)] += count
      state.lanes.put(chain: first)
      return state.asleep.popLast()
    }
    return isAccepted
  }

  func addSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
    let subscription = LockingSubscription(entry, self)
    withLock { $0.subscriptions.append(subscription) }
    return Subscription(pointer: Unmanaged.passUnretained(subscription).toOpaque())
  }

  func makeWorker(
    _ consumer: Consumer, _ strategy: EventWaitStrategy, isHeld: Bool
  ) -> any MailboxCore {
    LockingWorker(self, strategy, isHeld: isHeld)
  }

  func close() { close(drops: true) }
  func closeWhenEmpty() { close(drops: false) }

  private func close(drops: Bool) {
    var asleep: [LockingWorker] = []
    withLock { state -> LockingWorker? in
      state.refuses = true
      state.closes = state.closes || drops
      asleep = state.asleep
      state.asleep.removeAll()
      return nil
    }
    for worker in asleep {
      worker.bed.wake()
    }
  }

  func depths() -> [Int] { withLock { $0.depths } }
  func counts() -> (taken: UInt64, dropped: UInt64) { withLock { ($0.taken, $0.dropped) } }

  // MARK: Workers

  /// Frees what waits, outside the lock: the end of a payload is user code.
  func dropAll() {
    var returns = LockingReturns()
    while true {
      let next = withLock { state -> LockingDropped? in
        guard let (envelope, lane) = state.lanes.takeFirst() else { return nil }
        state.depths[lane] -= 1
        let next = LockingDropped(envelope, lane)
        state.dropped += next.event == nil ? 0 : 1
        return next
      }
      guard let next else { return }
      next.end(&returns)
    }
  }
}
