// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer: Instrumented {
  /// The probe of the consumer whose handlers the calling thread is running, if any.
  static let currentProbe: @Sendable () -> Unmanaged<ConsumerProbe>? = { [current] in
    current.unretained.map { $0._withUnsafeGuaranteedRef { .passUnretained($0.probe) } }
  }

  func followInstruments() { registry.followInstruments() }

  /// How many events wait in the mailbox.
  var waiting: Int { mailbox.waiting }

  /// Leaves the instruments, which keep its last figures. Call it once it is settled: before, nobody knows which of the
  /// waiting calls will begin.
  func leaveInstruments() { basis.instruments.remove(probe) { reading } }

  var reading: ReceiverReading {
    let calls = asyncCalls
    // One count for both, or an event that is freed meanwhile would be accepted, and neither waiting nor cancelled.
    let kept = self.mailbox.counts()
    let (counts, mailbox) = (statistics(kept.dropped, calls), mailboxStatistics(kept, calls))
    return ReceiverReading(
      accepted: mailbox.accepted, refused: mailbox.refused, dropped: mailbox.dropped, waiting: mailbox.waiting,
      highWaterMark: mailbox.highWaterMark, delivered: counts.delivered, skipped: counts.skipped,
      cancelled: counts.cancelled, handled: probe.handled)
  }
}

extension Consumer {
  var statistics: EventThreadStatistics {
    // First: then they are among those that were delivered.
    let calls = asyncCalls
    return statistics(mailbox.counts().dropped, calls)
  }

  private func statistics(_ cancelled: UInt64, _ asyncCalls: (waiting: UInt64, lost: UInt64)) -> EventThreadStatistics {
    // Those that are counted by type, and those that are not.
    let (counted, others) = (probe.total, HandledCounts(calls.counts.memory))
    let taken = counted.delivered + others[HandledCounts.delivered]
    return EventThreadStatistics(
      delivered: taken - min(taken, asyncCalls.waiting + asyncCalls.lost),
      skipped: counted.skipped + others[HandledCounts.skipped] + mailbox.supersededCount,
      cancelled: cancelled + min(taken, asyncCalls.lost))
  }

  /// Of the events that its task has taken for calls: those that wait to begin, and those that never do. What waits
  /// when the consumer was closed does not begin any more. A call that is dropped at this moment may count twice.
  private var asyncCalls: (waiting: UInt64, lost: UInt64) {
    guard let calls = pump?.driver.calls else { return (0, 0) }
    return calls.waiting == 0 || delivers ? (calls.waiting, calls.dropped) : (0, calls.dropped + calls.waiting)
  }

  /// How many events wait in the mailbox, or for calls of its task.
  var waitingWithCalls: Int { waiting + Int(asyncCalls.waiting) }

  /// Whether it has ended, and its statistics do not change any more.
  var isSettled: Bool { ended.isOpen && !hasCalls }

  /// Whether calls of its task wait to begin.
  var hasCalls: Bool { (pump?.driver.calls.waiting ?? 0) > 0 }

  var mailboxStatistics: EventMailboxStatistics {
    let calls = asyncCalls
    return mailboxStatistics(mailbox.counts(), calls)
  }

  private func mailboxStatistics(
    _ counts: (taken: UInt64, dropped: UInt64), _ asyncCalls: (waiting: UInt64, lost: UInt64)
  ) -> EventMailboxStatistics {
    var statistics = mailbox.statistics(counts)
    // They were taken, and so are among the accepted.
    statistics.waiting += Int(asyncCalls.waiting)
    return statistics
  }

  /// How many events were taken: delivered or skipped. On the consumer's thread.
  var handled: UInt64 { held.pointee.taken }
}
