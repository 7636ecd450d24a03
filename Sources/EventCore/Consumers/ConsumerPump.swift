// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Drives a consumer that has no thread: each wake-up of the consumer's mailbox schedules one job of a `PumpDriver`, and
/// the job delivers a bounded batch. One thread at a time drives the consumer, whichever threads the jobs run on.
///
/// The mailbox retains the pump, since a posting thread may still call `wake` when the consumer is gone.
final class ConsumerPump: @unchecked Sendable {
  // `consumer` is written once, before others know the mailbox; everything else is atomic or constant.

  /// Which thread drives the consumer. Only the driving thread leaves `running`, `rewoken`, `borrowed` and
  /// `missed`, except that others turn `running` into `rewoken` and `borrowed` into `missed`.
  private enum State: UInt8, AtomicRepresentable {
    /// No thread and no job. The mailbox is armed.
    case idle
    /// A job will come. The mailbox is not armed.
    case scheduled
    /// A thread drives the consumer.
    case running
    /// A thread drives the consumer, and the mailbox has been armed and woken meanwhile.
    case rewoken
    /// A thread drives the consumer for a moment, by `borrow`, and a job will come.
    case borrowed
    /// The same, and the job, or a task that takes events, has come and returned without doing anything.
    case missed
    case ended
  }

  private let state = Atomic<State>(.idle)
  private let isClosing = Atomic<Bool>(false)
  private weak var consumer: Consumer?
  let driver: any PumpDriver
  /// How many events a job delivers at most, or one more (`perform`).
  private let batch: Int

  init(_ driver: any PumpDriver, batch: Int) {
    self.driver = driver
    self.batch = batch
  }

  /// Before the consumer's mailbox is known to anybody.
  func attach(_ consumer: Consumer) {
    self.consumer = consumer
  }

  // MARK: From the mailbox

  /// The armed mailbox has got something to do, once for each arming; or the consumer is to see that it was closed. Any
  /// thread.
  func wake() {
    while true {
      switch state.load(ordering: .relaxed) {
      case .idle:
        // Pairs with the exchange of the last driving thread. The driver orders the job after this call.
        if exchange(.idle, .scheduled) {
          driver.schedule(self)
          return
        }
      case .running:
        if exchange(.running, .rewoken) { return }
      case .scheduled, .rewoken, .borrowed, .missed, .ended:
        // The mailbox was not armed, or has ended.
        return
      }
    }
  }

  /// As `Consumer.control` and `idle`, for the mailbox, which knows only the pump.
  func control() { consumer?.control() }
  func idle() { consumer?.idle() }

  // MARK: From the driver

  /// Delivers a batch, and begins nothing once the time on the central's clock has come. On any thread. False if no job
  /// was due.
  @discardableResult
  func perform(until deadline: UInt64 = .max) -> Bool {
    guard claim(isForJob: true) == .scheduled else { return false }
    guard let consumer else {
      // The consumer was released before this job came.
      didEnd()
      return true
    }
    var result = consumer.pump(limit: batch, until: deadline)
    // At its limit it does not look for more, and the next job would be one for nothing. One event may come meanwhile.
    if result == .more, consumer.waiting == 0 { result = consumer.pump(limit: 1, until: deadline) }
    switch result {
    case .more: schedule()
    case .dry: handBack(.running, as: .idle)
    case .ended: didEnd()
    }
    return true
  }

  /// A job that keeps the consumer, so that its handlers, which need not be `Sendable`, are freed where it runs.
  func makeJob() -> @Sendable () -> Void {
    { [consumer] in withExtendedLifetime(consumer) { _ = self.perform() } }
  }

  /// Delivers for a loop that calls this whenever it likes, with a wake-up or without; a limit of 0 delivers nothing. Nil
  /// if a thread drives the consumer already. The driver does not lend the consumer. Without a wake-up the mailbox may be
  /// armed. That makes no difference, since the state alone says who drives: a wake-up that comes meanwhile, or for
  /// something that this call delivers, makes one more job.
  func run(
    _ consumer: Consumer, limit: Int, until deadline: UInt64, timers: Scheduler? = nil
  ) -> PumpResult? {
    guard let found = claim() else { return nil }
    guard found != .ended else {
      driver.willRest()
      return .ended
    }
    guard limit > 0 else {
      // As after any run that leaves something: a loop that waits for its wake-up runs again.
      if found == .idle { handBack(.running, as: .idle) } else { schedule() }
      return .more
    }
    let before = consumer.handled
    let result = consumer.pump(limit: limit, until: deadline, timers: timers)
    if result != .more { driver.willRest() }
    switch result {
    // The deadline had passed: the mailbox is armed, as it was. With a clock or timers it may be so no more.
    case .more
    where found == .idle && timers == nil && consumer.basis.clock == nil && consumer.handled == before && waiting == 0:
      handBack(.running, as: .idle)
    case .more: schedule()
    case .dry: handBack(.running, as: .idle)
    case .ended: didEnd()
    }
    return result
  }

  /// Delivers one event, or does what else is to be done, for a loop that has looked for work. Returns how many events
  /// were handled.
  func step() -> Int {
    guard let consumer else {
      perform()
      return 0
    }
    let before = consumer.handled
    _ = run(consumer, limit: 1, until: .max)
    return Int(consumer.handled &- before)
  }

  var waiting: Int { consumer?.mailbox.waiting ?? 0 }
  /// As those of the consumer.
  var isOpen: Bool { consumer?.isOpen ?? false }
  var delivers: Bool { consumer?.delivers ?? false }
  var isAdmitted: Bool { consumer?.isAdmitted.load(ordering: .relaxed) ?? false }

  /// The thread that drives is about to deliver whatever waits: a wake-up so far needs no job of its own.
  func willDeliver() {
    _ = exchange(.rewoken, .running)
  }

  /// Delivers one event for a task that takes events one by one. It stays the one that drives until nothing is left,
  /// or until `endTakes`, so that a take costs no exchange. Nil if others drive the consumer.
  ///
  /// - Parameter isDriving: Whether the task drives already; the task keeps it from one take to the next.
  func take(_ consumer: Consumer, _ isDriving: inout Bool) -> PumpResult? {
    if !isDriving {
      guard let found = claim() else { return nil }
      guard found != .ended else { return .ended }
      isDriving = true
    }
    let result = consumer.takeOne()
    switch result {
    case .more:
      // Nobody else answers those who wait for a handler, here and below: the next take may never come. As for the order,
      // see `endIfClosing`.
      if isClosing.load(ordering: .sequentiallyConsistent) { consumer.control() }
    case .dry:
      isDriving = false
      consumer.control()
      handBack(.running, as: .idle)
    case .ended:
      isDriving = false
      didEnd()
    }
    return result
  }

  /// Ends takes before nothing is left.
  func endTakes() { schedule() }

  /// Whether a job is due. Sequentially consistent, for a loop that looks before it sleeps.
  var isDue: Bool { state.load(ordering: .sequentiallyConsistent) == .scheduled }
  /// Whether no thread drives the consumer; a job may be due. Sequentially consistent, as `exchange`, with which it pairs.
  var isIdle: Bool { [.idle, .scheduled].contains(state.load(ordering: .sequentiallyConsistent)) }
  /// Relaxed: a hint.
  var isRunning: Bool { state.load(ordering: .relaxed) == .running }
  var hasEnded: Bool { state.load(ordering: .acquiring) == .ended }

  /// Makes the calling thread the one that drives, and returns the state before. Nil if another drives already, or if it
  /// comes for a job and none is due.
  private func claim(isForJob: Bool = false) -> State? {
    while true {
      let found = state.load(ordering: .relaxed)
      switch found {
      case .idle where isForJob:
        return nil
      case .idle, .scheduled:
        guard exchange(found, .running) else { continue }
        // Before the counts of what is taken: pairs with the fence of `Consumer.isIdle`.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        return found
      case .borrowed:
        // The caller may have come for the job that was due: it gets another one.
        if exchange(.borrowed, .missed) { return nil }
      case .running, .rewoken, .missed:
        return nil
      case .ended:
        return found
      }
    }
  }

  private func schedule() {
    // Sequentially consistent: writes, before `endIfClosing` reads (see `end`).
    state.store(.scheduled, ordering: .sequentiallyConsistent)
    driver.goOn(self)
    endIfClosing()
  }

  /// Lets others drive the consumer. Schedules a job instead if the mailbox was woken or a job missed.
  private func handBack(_ from: State, as to: State) {
    if exchange(from, to) { return endIfClosing() }
    schedule()
    // As in `borrow`: who drains it meanwhile leaves its end to that job.
    consumer?.endIfDrained()
  }

  // MARK: From any thread

  /// Runs `body` as the driving thread. False if another one drives, or the loop alone may: an interrupt reaches it.
  func borrow(_ body: () -> Void) -> Bool {
    while driver.lends {
      let found = state.load(ordering: .relaxed)
      guard found == .idle || found == .scheduled else { return false }
      let meanwhile = found == .idle ? State.running : .borrowed
      guard exchange(found, meanwhile) else { continue }
      body()
      handBack(meanwhile, as: found)
      // Who drained it meanwhile found it in use, and left its end to what drives it, which may never come.
      consumer?.endIfDrained()
      return true
    }
    return false
  }

  /// Ends the consumer on the calling thread, or leaves that to the thread that drives it. Mostly no job is scheduled for
  /// it, since the queue may never be served. After the mailbox was closed.
  func end() {
    // Both sides write, then read: this one `isClosing`, then `state`; a driving thread the reverse.
    isClosing.store(true, ordering: .sequentiallyConsistent)
    endIfClosing()
  }

  /// Ends the consumer, as the driver takes no more jobs: once it has handled what waits, or at once, and then not inside
  /// a dispatch.
  func close(whenEmpty: Bool) {
    consumer?.close(whenEmpty: whenEmpty)
  }

  private func endIfClosing() {
    guard isClosing.load(ordering: .sequentiallyConsistent) else { return }
    while true {
      let found = state.load(ordering: .sequentiallyConsistent)
      switch found {
      case .scheduled where driver.endsInItsJobs:
        return
      case .idle where driver.endsInItsJobs:
        guard exchange(.idle, .scheduled) else { continue }
        return driver.schedule(self)
      case .idle, .scheduled:
        guard exchange(found, .running) else { continue }
        guard let consumer else { return didEnd() }
        // A closed mailbox calls no handler, so this ends at once.
        while consumer.pump(limit: batch) != .ended {}
        didEnd()
        return
      case .running, .rewoken, .borrowed, .missed, .ended:
        return
      }
    }
  }

  private func didEnd() {
    state.store(.ended, ordering: .releasing)
    driver.finish()
  }

  private func exchange(_ expected: State, _ desired: State) -> Bool {
    // Sequentially consistent for `end`; it also orders what one driving thread did before the next.
    state.compareExchange(
      expected: expected, desired: desired, ordering: .sequentiallyConsistent
    ).exchanged
  }
}
