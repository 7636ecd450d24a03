// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer {
  /// How late a timer may be that was set while a pump on the system's clock handles events, in nanoseconds: the run
  /// learns of it after that time. A look for each event would cost a lock of the timers.
  private static var timerSlack: UInt64 { 100_000 }

  /// `MailboxCore.pump` for a central with a clock of its own, or whose timers its pumps run. A timer that becomes
  /// due while many events wait is not put off until they are handled, even if a handler among them has set it.
  func pumpOnClock(limit: Int, until deadline: UInt64, _ timers: Scheduler?) -> PumpResult {
    var left = limit
    var next = runDue(timers)?.next ?? .max
    var isHeldUp = false
    while true {
      let before = handled
      // What the timers have dispatched is for this turn.
      self.pump?.willDeliver()
      let result =
        isHeldUp
        ? pump(limit: 1, until: deadline, timers) : pump(limit: left, until: min(deadline, next), timers)
      let count = Int(handled &- before)
      left -= count
      if result == .ended { return .ended }
      guard left > 0 else { return .more }
      switch (result, timers) {
      case (.dry, _?):
        // Timers that are due again all the time and dispatch nothing to this mailbox would keep the run for ever.
        guard count > 0, let (fired, later) = runDue(timers), fired > 0 else { return .dry }
        next = later
      case (.more, _?):
        if basis.now >= deadline { return .more }
        // Timers that are due again all the time leave no time before the next one: an event begins nevertheless.
        isHeldUp = count == 0
        next = runDue(timers)?.next ?? .max
      default:
        return result
      }
    }
  }

  /// Fires timers as the mailbox's consumer: what they dispatch to it must not wait for a place that nobody else frees.
  private func runDue(_ timers: Scheduler?) -> (fired: Int, next: UInt64)? {
    guard let timers else { return nil }
    let before = mailbox.enter()
    defer { mailbox.leave(before) }
    // They dispatch outside of handlers.
    return withCurrent(nil) { timers.runDue() }
  }

  /// Returns `.more` before the limit and the deadline if a timer may have been set meanwhile.
  private func pump(limit: Int, until deadline: UInt64, _ timers: Scheduler?) -> PumpResult {
    guard let clock = basis.clock, deadline != .max || timers != nil else {
      let slice = timers == nil ? deadline : min(deadline, monotonicNanoseconds() + Self.timerSlack)
      return mailbox.pump(self, limit: limit, until: slice)
    }
    // The cores know the system's clock alone.
    for _ in 0..<limit {
      guard clock.now < deadline else { return .more }
      let result = mailbox.pump(self, limit: 1, until: .max)
      guard result == .more else { return result }
      if let timers, clock.now >= timers.nextDeadline { return .more }
    }
    return .more
  }
}
