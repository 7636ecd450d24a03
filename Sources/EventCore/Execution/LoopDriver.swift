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
///     W2 write                             R2 if `isSignalled`: clear it, then read
///     W3 set `isSignalled`                 R3 state: running -> idle, or write again if it was woken meanwhile
///
/// No wake-up is lost: a W1 that succeeds comes before R1 or after R3. In the first case the run has handled
/// what it was for; a late W2 makes one wake-up for nothing, and W3 has the next R2 read it. In the second case
/// nothing reads until the next run. W3 follows W2 since a loop that saw the flag without the write would read
/// nothing, and the descriptor would stay readable.
final class LoopDriver: PumpDriver {
  /// When nothing was left the last time, or the pump was made. Written by the loop, before a look that found
  /// nothing: whatever waits now has been posted since.
  private let dry = Atomic<UInt64>(monotonicNanoseconds())
  private let descriptor = LazyReference<WakeDescriptor>()
  private let isSignalled = Atomic<Bool>(false)
  private let wakeUp: (@Sendable () -> Void)?

  init(wakeUp: (@Sendable () -> Void)?) {
    self.wakeUp = wakeUp
  }

  func schedule(_ pump: ConsumerPump) {
    signal()
    wakeUp?()
  }

  private func signal() {
    // Pairs with the fence of `descriptor(of:)`: between W1, the store to the state, and the look for the descriptor.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    guard let descriptor = descriptor.value else { return }
    descriptor.signal()
    // Releasing, pairs with `willRest`: W2 before W3.
    isSignalled.store(true, ordering: .releasing)
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

  /// Waits until a job is due; false at the deadline. The loop only.
  func wait(for pump: ConsumerPump, until deadline: UInt64) -> Bool {
    let descriptor = descriptor(of: pump)
    while !pump.isDue {
      guard !pump.hasEnded, descriptor.wait(until: deadline) else { return pump.isDue }
      guard !pump.isDue else { break }
      // A wake-up for nothing. The write of a job that became due now may be among what is read.
      descriptor.clear()
      if pump.isDue { signal() }
    }
    return true
  }

  var lends: Bool { false }

  func ranDry() { emptied(at: monotonicNanoseconds()) }

  func willRest() {
    // Acquiring, pairs with `signal`.
    guard isSignalled.load(ordering: .relaxed), isSignalled.exchange(false, ordering: .acquiring) else { return }
    descriptor.value?.clear()
  }

  /// Notes a time at which nothing waited.
  func emptied(at time: UInt64) {
    // Relaxed, as the load: the loop alone uses it.
    dry.store(time, ordering: .relaxed)
  }

  var emptied: UInt64 { dry.load(ordering: .relaxed) }
}

extension Consumer {
  /// Where the handlers of an event thread, a `UIEventThread` or an `EventPump` run.
  var place: EventListenerContext {
    if isPumpedByLoop { return .pump }
    return pump == nil ? .eventThread : .mainQueue
  }

  /// Whether it is that of an `EventPump`.
  var isPumpedByLoop: Bool { pump?.driver is LoopDriver }
}
