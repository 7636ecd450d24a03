// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Drives a consumer that has no thread of its own: each wake-up of its mailbox becomes one job of
/// a `PumpDriver`, which delivers a bounded batch. One thread at a time drives the consumer, whatever
/// threads the jobs run on.
///
/// The mailbox retains it, since whoever posts may be on its way to `wake` when the consumer is
/// gone.
final class ConsumerPump: @unchecked Sendable {
  // `consumer` is written once, before the mailbox is known to anybody; everything else is atomic
  // or constant.

  /// Who drives the consumer. Out of `running`, `rewoken`, `borrowed` and `missed` only the thread that
  /// drives it brings it, into `rewoken` and `missed` only others.
  private enum State: UInt8, AtomicRepresentable {
    /// The mailbox is armed.
    case idle
    /// A job is on its way; the mailbox is not armed.
    case scheduled
    /// A thread drives it.
    case running
    /// A thread drives it, and the mailbox has been armed and woken meanwhile.
    case rewoken
    /// A thread looks after the consumer while a job is on its way.
    case borrowed
    /// The same; the job has come meanwhile, and has returned without doing anything.
    case missed
    case ended
  }

  private let state = Atomic<State>(.idle)
  private let isClosing = Atomic<Bool>(false)
  private weak var consumer: Consumer?
  let driver: any PumpDriver
  /// How many events a job delivers at most.
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

  /// The mailbox was armed and has got something to do. Any thread; once for each arming.
  func wake() {
    while true {
      switch state.load(ordering: .relaxed) {
      case .idle:
        // Pairs with the exchange of the thread that drove it last. The job is ordered by its driver.
        if exchange(.idle, .scheduled) {
          driver.schedule(self)
          return
        }
      case .running:
        if exchange(.running, .rewoken) { return }
      case .scheduled, .rewoken, .borrowed, .missed, .ended:
        // Not armed, or nothing left to do.
        return
      }
    }
  }

  /// As `Consumer.control`, for the mailbox, which knows the pump.
  func control() { consumer?.control() }
  func idle() { consumer?.idle() }

  // MARK: From the driver

  /// Delivers a batch. Any thread, one at a time or not. False if no job was due.
  @discardableResult
  func perform() -> Bool {
    guard claimJob() else { return false }
    guard let consumer else {
      // The last who used it left while this job was on its way.
      hasEnded()
      return true
    }
    switch consumer.pump(limit: batch) {
    case .more: schedule()
    case .dry: handBack(.running, as: .idle)
    case .ended: hasEnded()
    }
    return true
  }

  private func claimJob() -> Bool {
    while true {
      switch state.load(ordering: .relaxed) {
      case .scheduled:
        if exchange(.scheduled, .running) { return true }
      case .borrowed:
        if exchange(.borrowed, .missed) { return false }
      case .idle, .running, .rewoken, .missed, .ended:
        return false
      }
    }
  }

  private func schedule() {
    // Sequentially consistent: the first half of `end`'s "publish, then look"; the second half
    // follows.
    state.store(.scheduled, ordering: .sequentiallyConsistent)
    driver.schedule(self)
    endIfClosing()
  }

  /// Lets others drive the consumer, unless there is something to do since.
  private func handBack(_ from: State, as to: State) {
    if exchange(from, to) {
      endIfClosing()
    } else {
      schedule()
    }
  }

  // MARK: From those who look after the consumer

  /// Runs `body` as the consumer, if nobody drives it now. False if somebody does: then an interrupt of
  /// the mailbox reaches that one.
  func borrow(_ body: () -> Void) -> Bool {
    while true {
      let found = state.load(ordering: .relaxed)
      guard found == .idle || found == .scheduled else { return false }
      let meanwhile = found == .idle ? State.running : .borrowed
      guard exchange(found, meanwhile) else { continue }
      body()
      handBack(meanwhile, as: found)
      return true
    }
  }

  /// Ends the consumer here and now, unless a thread drives it, which then does: what waits must not
  /// stay until a queue is served that perhaps never is. After the mailbox was closed; any thread.
  func end() {
    // Publish, then look; the thread that drives the consumer does both the other way round.
    isClosing.store(true, ordering: .sequentiallyConsistent)
    endIfClosing()
  }

  /// The driver cannot run jobs any more: ends the consumer. Any thread, outside of a dispatch.
  func abandon() {
    consumer?.close(whenEmpty: false)
  }

  private func endIfClosing() {
    guard isClosing.load(ordering: .sequentiallyConsistent) else { return }
    while true {
      let found = state.load(ordering: .sequentiallyConsistent)
      switch found {
      case .idle, .scheduled:
        guard exchange(found, .running) else { continue }
        guard let consumer else { return hasEnded() }
        // A closed mailbox calls no handler: its first step is the end.
        while consumer.pump(limit: batch) != .ended {}
        hasEnded()
        return
      case .running, .rewoken, .borrowed, .missed, .ended:
        return
      }
    }
  }

  private func hasEnded() {
    state.store(.ended, ordering: .releasing)
    driver.finish()
  }

  private func exchange(_ expected: State, _ desired: State) -> Bool {
    // Sequentially consistent for `end`; it also hands the consumer's state from one pump to the
    // next.
    state.compareExchange(
      expected: expected, desired: desired, ordering: .sequentiallyConsistent
    ).exchanged
  }
}

extension Consumer {
  /// Whether what is posted can still be handled, as far as that depends on who drives the
  /// consumer.
  var canRun: Bool { pump?.driver.canRun ?? true }
}

/// Where the jobs of a pump run.
protocol PumpDriver: AnyObject, Sendable {
  /// Has `pump.perform()` called soon. Any thread; must not wait and must not call it by itself.
  func schedule(_ pump: ConsumerPump)

  /// Whether jobs can still run: false once the actor or the thread that ran them has ended. Any
  /// thread.
  var canRun: Bool { get }

  /// The consumer has ended: no job is needed any more.
  func finish()
}

extension PumpDriver {
  var canRun: Bool { true }
  func finish() {}
}
