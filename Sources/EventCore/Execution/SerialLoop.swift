// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Runs all that would be concurrent in a deterministic central on one thread, event by event: its event threads, pools,
/// listener threads, queues and tasks. None of them has a thread or a job.
///
/// Whoever has an event is a candidate for the next step, each worker of a pool for what its shared mailbox has. If there
/// are several, a generator chooses, in a list that is ordered by the age of the candidates. So the order depends on the
/// seed and on what has run so far, and not on how a core wakes its consumers: a candidate is one that has an event, and
/// one that was woken for anything else is served without a choice.
///
/// One file, though long: whatever changes `state` is in here.
///
/// Synchronization: `state` has a mutex, which nothing else is taken within. Dispatches from any thread wake consumers;
/// one thread at a time runs them.
final class SerialLoop: Sendable {
  /// A consumer, by what drives it.
  fileprivate struct Member: Sendable {
    let driver: SerialDriver
    let pump: ConsumerPump
    /// What it is a worker of.
    let shared: SharedMailbox?
  }

  fileprivate struct State {
    var random: UInt64
    /// How many members there have been, and of each of their names the last number that was given out.
    var count = 0
    var names: [String: Int] = [:]
    /// Woken since the last step.
    var woken: [Member] = []
    /// Those with an event, by age; no workers.
    var ready: [Member] = []
    /// The workers of shared mailboxes, which nobody wakes, by age.
    var workers: [Member] = []
    /// The number of the thread that runs; 0 if none does.
    var thread: UInt = 0
    /// The central is gone, so nothing runs any more.
    var hasEnded = false

    /// Whether a member may have that label: a name, perhaps with a number behind it.
    func hasGiven(_ label: String) -> Bool {
      if names[label] != nil { return true }
      guard let space = label.lastIndex(of: " "), let number = Int(label[label.index(after: space)...]) else {
        return false
      }
      return number > 1 && number <= names[String(label[..<space])] ?? 0
    }
  }
  let seed: UInt64
  private let state: Guarded<State>
  private let timers: Scheduler
  let log = TraceLog()

  init(seed: UInt64, timers: Scheduler) {
    self.seed = seed
    state = Guarded(State(random: seed))
    self.timers = timers
  }

  // MARK: Making its members

  /// Makes what drives a consumer.
  ///
  /// - Parameters:
  ///   - original: What would drive it in another central; nil for a thread.
  ///   - shared: What it is a worker of.
  ///   - whenEnded: Called when the consumer has ended.
  func makePump(
    insteadOf original: (any ContextDriver)? = nil, workerOf shared: SharedMailbox? = nil,
    whenEnded: (@Sendable () -> Void)? = nil
  ) -> ConsumerPump {
    let number = state.withLock { state in
      state.count += 1
      return state.count
    }
    let driver = SerialDriver(self, number, insteadOf: original, isWorker: shared != nil, whenEnded)
    let pump = ConsumerPump(driver, batch: ExecutionContexts.largeBatch)
    if let shared {
      state.withLock { $0.workers.append(Member(driver: driver, pump: pump, shared: shared)) }
    }
    return pump
  }

  /// A consumer's name in traces; a number follows it if others have it, too.
  func name(_ name: String) -> TraceName {
    let label = state.withLock { state in
      var (label, number) = (name, 1)
      // Others may be named as this one would be.
      if state.hasGiven(name) { number = state.names[name] ?? 1 }
      while state.hasGiven(label) {
        number += 1
        label = "\(name) \(number)"
      }
      state.names[name] = number
      return label
    }
    return TraceName(log, label)
  }

  // MARK: From its members

  fileprivate func wake(_ driver: SerialDriver, _ pump: ConsumerPump) {
    state.withLock { state in
      if !state.hasEnded { state.woken.append(Member(driver: driver, pump: pump, shared: nil)) }
    }
  }

  fileprivate func remove(_ driver: SerialDriver) {
    let removed = state.withLock { state in
      defer {
        state.woken.removeAll { $0.driver === driver }
        state.ready.removeAll { $0.driver === driver }
        state.workers.removeAll { $0.driver === driver }
      }
      return state.woken + state.ready + state.workers
    }
    withExtendedLifetime(removed) {}
  }

  /// Lets go of all members, whose drivers retain the loop. When the central is released.
  func end() {
    let members = state.withLock { state in
      defer { (state.woken, state.ready, state.workers, state.hasEnded) = ([], [], [], true) }
      return state.woken + state.ready + state.workers
    }
    withExtendedLifetime(members) {}
  }

  // MARK: Running

  /// Runs until nothing is left that could, `limit` events have been handled, or a condition holds. Returns how many
  /// events were handled.
  func run(limit: Int = .max, until isDone: () -> Bool = { false }) -> Int {
    guard let handled = runUnlessRunning(limit, isDone) else {
      refuse(
        """
        A deterministic central is run by one thread at a time, and another thread is running this one: give each \
        thread a central of its own, or await one after the other what runs it (next, expect(no:), answer(to:)).
        """, file: #fileID, line: #line)
    }
    return handled
  }

  /// Runs until nothing is left that could, a latch is open, or a condition holds. While another thread runs, as with two
  /// drains at once, it waits for its turn, or for the latch.
  nonisolated(nonsending) func run(untilOpen latch: Latch, or isDone: () -> Bool) async {
    while runUnlessRunning(.max, { latch.isOpen || isDone() }) == nil, !latch.isOpen, !isDone() {
      // Nobody tells when the other one is done. A task that is cancelled does not wait, but lets others run.
      _ = await latch.opened(until: monotonicNanoseconds() + 1_000_000)
      await Task.yield()
    }
  }

  /// Nil if another thread runs.
  private func runUnlessRunning(_ limit: Int, _ isDone: () -> Bool) -> Int? {
    guard enter() else { return nil }
    defer { state.withLock { $0.thread = 0 } }
    EventCentral.Core.reclaim()
    var handled = 0
    while handled < limit, !isDone() {
      timers.runDue()
      serve()
      if endWorkers() { continue }
      if let next = choose() {
        handled += next.step()
      } else if timers.runDue().fired == 0 {
        break
      }
    }
    return handled
  }

  /// False if another thread runs.
  private func enter() -> Bool {
    let thread = currentThreadNumber()
    let found = state.withLock { state in
      defer { if state.thread == 0 { state.thread = thread } }
      return state.thread
    }
    require(
      found != thread,
      """
      A deterministic central handles one event after another, and what runs it (run(limit:), advance(by:), next, \
      expect(no:), answer(to:), drain(until:), join()) was called inside one of its handlers, or inside a job of an \
      actor that runs on one of its threads, where nothing else can run: call it elsewhere, or call cancel() to \
      end a thread.
      """)
    return found == 0
  }

  /// Puts the woken members that have an event among those that are ready, and serves the others, which have lost a
  /// handler or are to end.
  private func serve() {
    while true {
      let woken = state.withLock { state in
        defer { state.woken.removeAll() }
        return state.woken
      }
      if woken.isEmpty { return }
      for member in woken.sorted(by: { $0.driver.number < $1.driver.number }) {
        guard member.hasEvent else {
          _ = member.step()
          continue
        }
        state.withLock { state in
          let index = state.ready.firstIndex { $0.driver.number > member.driver.number }
          state.ready.insert(member, at: index ?? state.ready.count)
        }
      }
    }
  }

  /// The member that takes the next event; nil if there is no event.
  private func choose() -> Member? {
    let workers = state.withLock { $0.workers }
    // One look at each shared mailbox.
    var shared: [ObjectIdentifier: Bool] = [:]
    let busy = workers.filter { worker in
      guard let mailbox = worker.shared else { return false }
      let hasShared = shared[ObjectIdentifier(mailbox)] ?? (mailbox.core.depths().contains { $0 > 0 })
      shared[ObjectIdentifier(mailbox)] = hasShared
      return hasShared && worker.takesShared || worker.hasEvent
    }
    return state.withLock { state in
      guard !busy.isEmpty else {
        guard !state.ready.isEmpty else { return nil }
        return state.ready.remove(at: state.random(below: state.ready.count))
      }
      let candidates = (state.ready + busy).sorted { $0.driver.number < $1.driver.number }
      let chosen = candidates[state.random(below: candidates.count)]
      state.ready.removeAll { $0.driver === chosen.driver }
      return chosen
    }
  }

  /// Ends the workers that have handled their last event, without a random draw. True if one ended: it may wake others.
  private func endWorkers() -> Bool {
    let done = state.withLock { $0.workers }.filter(\.isDone)
    for worker in done { _ = worker.step() }
    return done.contains { $0.pump.hasEnded }
  }
}

extension SerialLoop.State {
  /// A number below `count`. One candidate needs no choice.
  fileprivate mutating func random(below count: Int) -> Int {
    guard count > 1 else { return 0 }
    // SplitMix64 (Steele, Lea, Flood 2014), which takes any seed.
    random &+= 0x9E37_79B9_7F4A_7C15
    var drawn = random
    drawn = (drawn ^ (drawn >> 30)) &* 0xBF58_476D_1CE4_E5B9
    drawn = (drawn ^ (drawn >> 27)) &* 0x94D0_49BB_1331_11EB
    drawn ^= drawn >> 31
    return Int(drawn.multipliedFullWidth(by: UInt64(count)).high)
  }
}

extension SerialLoop.Member {
  /// Whether something waits for it alone.
  fileprivate var hasEvent: Bool { pump.waiting > 0 }

  /// Whether a worker takes from its shared mailbox, which it does to the end if that was closed.
  fileprivate var takesShared: Bool { pump.isAdmitted && (shared?.isClosed == true ? pump.delivers : pump.isOpen) }

  /// Whether a worker takes nothing new, and nothing is left for it.
  fileprivate var isDone: Bool { !pump.isOpen && !hasEvent && (!takesShared || shared?.waiting == 0) }

  /// Has it take one event, or do what else it has to. Returns how many events it handled.
  fileprivate func step() -> Int {
    if driver.isOnMain, hasEvent { requireMain() }
    return pump.step()
  }

  private func requireMain() {
    require(
      MainActor.isCurrent,
      """
      What is to run on the main queue or on the MainActor runs inside EventCentral.run(limit:) of a deterministic \
      central, which was called on another thread: call it on the main thread, or register with executeOn: \
      .listenerThread.
      """)
  }
}

/// The driver of a member of a `SerialLoop`.
final class SerialDriver: PumpDriver, Sendable {
  private let loop: SerialLoop
  /// The order in which the members were made.
  let number: Int
  /// What would drive the consumer in another central; nil for a thread.
  let original: (any ContextDriver)?
  let isOnMain: Bool
  private let isWorker: Bool
  private let whenEnded: (@Sendable () -> Void)?

  init(
    _ loop: SerialLoop, _ number: Int, insteadOf original: (any ContextDriver)?, isWorker: Bool,
    _ whenEnded: (@Sendable () -> Void)?
  ) {
    self.loop = loop
    self.number = number
    self.original = original
    isOnMain = (original as? QueueDriver).map { MainQueue.isMain($0.queue) } ?? false
    self.isWorker = isWorker
    self.whenEnded = whenEnded
  }

  var isLoop: Bool { true }
  var target: DispatchQueue? { original?.target }

  func schedule(_ pump: ConsumerPump) {
    // Workers are looked at for each event.
    if !isWorker { loop.wake(self, pump) }
  }

  func finish() {
    loop.remove(self)
    whenEnded?()
  }
}
