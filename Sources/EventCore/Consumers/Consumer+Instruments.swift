// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer: Instrumented {
  /// The probe of the consumer whose handlers the calling thread is running, if any.
  static let currentProbe: @Sendable () -> Unmanaged<ConsumerProbe>? = { [current] in
    current.unretained.map { $0._withUnsafeGuaranteedRef { .passUnretained($0.probe) } }
  }

  func followInstruments() { registry.followInstruments() }

  var waiting: Int { mailbox.depths().reduce(0, +) }

  var reading: ReceiverReading {
    // One count for both, or an event that is freed meanwhile would be accepted, and neither waiting nor cancelled.
    let kept = self.mailbox.counts()
    let (counts, mailbox) = (statistics(kept.dropped), mailboxStatistics(kept))
    return ReceiverReading(
      accepted: mailbox.accepted, refused: mailbox.refused, dropped: mailbox.dropped, waiting: mailbox.waiting,
      highWaterMark: mailbox.highWaterMark, delivered: counts.delivered, skipped: counts.skipped,
      cancelled: counts.cancelled, handled: probe.handled)
  }
}

extension Consumer {
  var statistics: EventThreadStatistics { statistics(mailbox.counts().dropped) }

  private func statistics(_ cancelled: UInt64) -> EventThreadStatistics {
    // First: then they are among those that were delivered.
    let pending = pump?.driver.calls ?? (waiting: 0, dropped: 0)
    // Those that are counted by type, and those that are not.
    let (counted, others) = (probe.total, HandledCounts(calls.counts.memory))
    let taken = counted.delivered + others[HandledCounts.delivered]
    // What waits to begin does not begin any more once the consumer has ended. A call that is dropped at this moment may
    // count twice.
    let lost = min(taken, pending.dropped + (delivers ? 0 : pending.waiting))
    return EventThreadStatistics(
      delivered: taken - lost,
      skipped: counted.skipped + others[HandledCounts.skipped] + mailbox.supersededCount,
      cancelled: cancelled + lost)
  }

  /// Whether it has ended, and its statistics do not change any more.
  var isSettled: Bool { ended.isOpen && (pump?.driver.calls.waiting ?? 0) == 0 }

  var mailboxStatistics: EventMailboxStatistics { mailboxStatistics(mailbox.counts()) }

  private func mailboxStatistics(_ counts: (taken: UInt64, dropped: UInt64)) -> EventMailboxStatistics {
    EventMailboxStatistics(
      counts, superseded: mailbox.supersededCount, waiting: mailbox.depths().reduce(0, +),
      mailbox.overflow)
  }

  /// How many events were taken: delivered or skipped. On the consumer's thread.
  var handled: UInt64 { held.pointee.taken }
}
