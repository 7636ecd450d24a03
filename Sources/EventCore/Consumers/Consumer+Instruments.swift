// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer: Instrumented {
  func followInstruments() { registry.followInstruments() }

  var waiting: Int { mailbox.depths().reduce(0, +) }

  var reading: ReceiverReading {
    let (counts, mailbox) = (statistics, mailboxStatistics)
    return ReceiverReading(
      accepted: mailbox.accepted, refused: mailbox.refused, dropped: mailbox.dropped, waiting: mailbox.waiting,
      highWaterMark: mailbox.highWaterMark, delivered: counts.delivered, skipped: counts.skipped,
      cancelled: counts.cancelled, handled: probe.handled)
  }
}
