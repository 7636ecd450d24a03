// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension ExecutionContexts {
  /// Waits for a latch in a deterministic central, at most until a time on its clock. True if it is open.
  ///
  /// The tasks of `async` listeners, and those that iterate over sequences, are none of the central: they take what waits
  /// for them, and may give it more to do. Its own time stands still meanwhile. So with a limit they have five seconds of
  /// the system's from the last event that was taken; loops have no more without one, since nobody knows whether a loop goes
  /// on.
  nonisolated(nonsending) func opened(_ latch: Latch, until deadline: UInt64, in serial: SerialLoop) async -> Bool {
    // In waits of a millisecond, so that a process that stands still loses one of them.
    var (waiting, patience) = (-1, 0)
    while true {
      await serial.run(untilOpen: latch) { basis.now >= deadline }
      if latch.isOpen { return true }
      let left = waitingCount
      if left != waiting { (waiting, patience) = (left, 5_000) }
      guard patience > 0 ? hasTasks : deadline == .max && hasCalls, basis.now < deadline, !Task.isCancelled else {
        return latch.isOpen
      }
      // For a millisecond at most: an event for the workers of a shared mailbox tells nobody that there is more to do.
      patience = max(0, patience - 1)
      _ = await latch.opened(until: monotonicNanoseconds() + 1_000_000)
    }
  }
}
