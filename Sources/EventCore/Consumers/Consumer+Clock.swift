// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer {
  /// `MailboxCore.pump` for a central with a clock of its own, or whose timers its pumps run. A timer that becomes
  /// due while many events wait is not put off until they are handled.
  func pumpOnClock(limit: Int, until deadline: UInt64, _ timers: Scheduler?) -> PumpResult {
    var left = limit
    var next = timers?.runDue().next ?? .max
    while true {
      let before = handled
      // What the timers have dispatched is for this turn.
      self.pump?.willDeliver()
      let result = pump(limit: left, until: min(deadline, next))
      left -= Int(handled &- before)
      if result == .ended { return .ended }
      guard left > 0 else { return .more }
      switch (result, timers) {
      case (.dry, let timers?):
        let (fired, later) = timers.runDue()
        if fired == 0 { return .dry }
        next = later
      case (.more, let timers?):
        if basis.now >= deadline { return .more }
        next = timers.runDue().next
      default:
        return result
      }
    }
  }

  private func pump(limit: Int, until deadline: UInt64) -> PumpResult {
    guard let clock = basis.clock, deadline != .max else {
      return mailbox.pump(self, limit: limit, until: deadline)
    }
    // The cores know the system's clock alone.
    for _ in 0..<limit {
      guard clock.now < deadline else { return .more }
      let result = mailbox.pump(self, limit: 1, until: .max)
      guard result == .more else { return result }
    }
    return .more
  }
}
