// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The driver of an `EventPump`, whose jobs a loop of the user's runs when it likes.
///
/// Only the loop drives the consumer. Others do not borrow it, not even to free a removed handler, since the
/// closures of the pump need not be `Sendable`.
///
/// A job that is due makes the descriptor readable, if there is one, and calls the wake-up closure. The loop
/// clears the descriptor when a run has left nothing, before the next job can become due:
///
///     a thread that posts                  the loop
///     W1 state: idle -> scheduled          R1 run until nothing is left; the state is `running`
///     W2 write                             R2 if `isSignalled`, or a thread is at W2 or W3: clear it, then read
///     W3 set `isSignalled`                 R3 state: running -> idle, or write again if it was woken meanwhile
///
/// No wake-up is lost: a W1 that succeeds comes before R1 or after R3. In the first case the run has handled
/// what it was for; a late W2 makes one wake-up for nothing, and W3 has the next R2 read it. In the second case
/// nothing reads until the next run. W3 follows W2 since a loop that saw the flag without the write would read
/// nothing, and the descriptor would stay readable. A thread may be taken away between the two, by the loop that it has
/// woken perhaps: hence the count of those that are there, or the loop's wait would return at once again and again.
final class LoopDriver: PumpDriver, TimerLoop {
  /// When nothing was left the last time, or the pump was made. Written by the loop, before a look that found
  /// nothing: whatever waits now has been posted since.
  private let dry: Atomic<UInt64>
  private let descriptor = LazyReference<WakeDescriptor>()
  private let isSignalled = Atomic<Bool>(false)
  /// How many threads are about to write, or to set `isSignalled` after it.
  private let writers = Atomic<Int>(0)
  private let wakeUp: (@Sendable () -> Void)?
  /// Whether the pump's owner ends it: what the end itself makes due needs no run, and the closure may need the owner.
  private let isEnding = Atomic<Bool>(false)
  private let dryWork = Guarded<[@Sendable () -> Bool]>([])
  /// Whether there is any. Written under the lock or after it.
  private let hasDryWork = Atomic<Bool>(false)
  private let clock: CentralClock?
  /// The timers that the loop runs; nil if it runs none.
  let timers: Scheduler?
  /// The earliest of these deadlines as the loop knows it, 0 if it will look before it waits. An earlier one wakes
  /// the loop: whoever adds a timer before all others (`Scheduler.add`) makes it known to the scheduler, and reads this;
  /// the loop writes this, and then looks once more. Sequentially consistent, all four.
  private let known = Atomic<UInt64>(0)

  init(wakeUp: (@Sendable () -> Void)?, _ basis: CentralBasis, timers: Scheduler?) {
    self.wakeUp = wakeUp
    self.timers = timers
    clock = basis.clock
    dry = Atomic(basis.now)
    timers?.add(self)
  }

  deinit { finish() }

  /// Nobody runs the timers here any more.
  func finish() { timers?.remove(self) }

  private var now: UInt64 { clock?.now ?? monotonicNanoseconds() }

  func schedule(_ pump: ConsumerPump) { wake() }

  /// The pump's owner ends it. Before the consumer is closed; the loop only.
  func willEnd() { isEnding.store(true, ordering: .relaxed) }

  private func wake() {
    signal()
    // Relaxed: for what the end does on its own thread.
    if !isEnding.load(ordering: .relaxed) { wakeUp?() }
  }

  private func signal() {
    // Pairs with the fence of `descriptor(of:)`: between W1, the store to the state, and the look for the descriptor.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    guard let descriptor = descriptor.value else { return }
    // Relaxed: a loop that the write has woken sees it.
    writers.wrappingAdd(1, ordering: .relaxed)
    descriptor.signal()
    // Releasing, both, pair with `willRest`: W2 before W3, and W3 before the end.
    isSignalled.store(true, ordering: .releasing)
    writers.wrappingSubtract(1, ordering: .releasing)
  }

  /// The descriptor, made at the first use. The loop only.
  func descriptor(of pump: ConsumerPump) -> WakeDescriptor {
    if let made = descriptor.value { return made }
    let made = descriptor.value { WakeDescriptor() }
    // Between the store of the descriptor and the look at the state: either `signal` sees the descriptor, or this
    // sees the job.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if pump.isDue { signal() }
    return made
  }

  /// Waits until a job or a timer is due; false at the deadline. The loop only.
  func wait(for pump: ConsumerPump, until deadline: UInt64) -> Bool {
    let descriptor = descriptor(of: pump)
    while !pump.isDue {
      guard !pump.hasEnded else { return false }
      let timer = nextTimer()
      guard timer > now else { break }
      guard !sleep(on: descriptor, until: min(deadline, timer)) else {
        // The sleep may have read the write of a job or a timer that came meanwhile.
        let next = nextTimer()
        let isDue = pump.isDue || next <= now
        // The timer was cancelled, or has fired in the run of another pump.
        if !isDue, now < deadline { continue }
        if isDue || next < timer { signal() }
        return isDue
      }
      guard !pump.isDue else { break }
      // A wake-up for nothing. The write of a job that became due now may be among what is read.
      descriptor.clear()
      if pump.isDue { signal() }
    }
    return true
  }

  /// Sleeps until the descriptor is readable. True if the time has come instead.
  private func sleep(on descriptor: WakeDescriptor, until time: UInt64) -> Bool {
    guard let clock else { return !descriptor.wait(until: time) }
    guard time != .max else { return !descriptor.wait(until: .max) }
    let cancel = clock.alarm(at: time) { [weak self] in self?.signal() }
    defer { cancel() }
    // Looked at once it is set: a clock that stands still rings for no time that has passed.
    while clock.now < time {
      guard descriptor.wait(until: .max) else { return false }
      guard clock.now >= time else { return false }
      descriptor.clear()
    }
    return true
  }

  // MARK: Timers

  /// The earliest deadline of the timers that the loop runs; `.max` if there is none. From here on an earlier one wakes
  /// the loop, until it runs. The loop only.
  func nextTimer() -> UInt64 {
    guard let timers else { return .max }
    var next = timers.nextDeadline
    while true {
      known.store(next, ordering: .sequentiallyConsistent)
      let last = next
      next = timers.nextDeadline
      if next >= last { return last }
    }
  }

  /// A run begins, which looks for timers.
  func willRun() {
    if timers != nil { known.store(0, ordering: .relaxed) }
  }

  func noteTimer(at deadline: UInt64) {
    guard deadline < known.load(ordering: .sequentiallyConsistent) else { return }
    wake()
  }

  var lends: Bool { false }
  var isLoop: Bool { true }

  func ranDry() {
    emptied(at: now)
    // Relaxed: of the loop's own, or of a call that happened before its run.
    if hasDryWork.load(ordering: .relaxed) { doDryWork() }
  }

  /// Calls a closure each time that a run has left nothing, until it returns false. Any thread.
  func whenDry(_ work: @escaping @Sendable () -> Bool) {
    dryWork.withLock { $0.append(work) }
    hasDryWork.store(true, ordering: .relaxed)
  }

  private func doDryWork() {
    let work = dryWork.withLock { work in
      defer { work = [] }
      return work
    }
    let left = work.filter { $0() }
    dryWork.withLock { work in
      work += left
      if work.isEmpty { hasDryWork.store(false, ordering: .relaxed) }
    }
  }

  func willRest() {
    // Acquiring, both, pair with `signal`. In this order: of a thread that is no writer any more the flag is seen.
    let isWritten = writers.load(ordering: .acquiring) != 0
    let isSignalled = isSignalled.load(ordering: .relaxed) && isSignalled.exchange(false, ordering: .acquiring)
    if isWritten || isSignalled { descriptor.value?.clear() }
  }

  /// Notes a time at which nothing waited.
  func emptied(at time: UInt64) {
    // Relaxed, as the load: the loop alone uses it.
    dry.store(time, ordering: .relaxed)
  }

  var emptied: UInt64 { dry.load(ordering: .relaxed) }
}

extension Consumer {
  /// Where the handlers of an event thread, a `UIEventThread`, an `EventPump` or a listener thread run.
  var place: EventListenerContext {
    if hooks.upkeep != nil { return .listenerThread }
    return switch pump?.driver {
    case nil: .eventThread
    case is LoopDriver: .pump
    case let serial as SerialDriver: serial.isOnMain ? .mainQueue : .eventThread
    default: .mainQueue
    }
  }
}
