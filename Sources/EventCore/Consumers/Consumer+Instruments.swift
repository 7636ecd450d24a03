// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

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
    var reading = figures
    reading.handled = probe.handled
    return reading
  }
}

extension Consumer {
  var statistics: EventThreadStatistics { figures.counts }

  var mailboxStatistics: EventMailboxStatistics { figures.mailbox }

  /// Both, of a consumer that has ended: what a dispatch still holds for it, that dispatch frees, and nobody would read the
  /// count.
  var lastFigures: ReceiverReading {
    var last = figures
    last.endWaiting()
    return last
  }

  /// Both at once, or an event that is freed meanwhile would be accepted, and neither waiting nor cancelled.
  private var figures: ReceiverReading {
    let kept = mailbox.counts()
    var statistics = mailbox.statistics(kept)
    // Those that are counted by type, and those that are not.
    let (counted, others) = (probe.total, HandledCounts(calls.counts.memory))
    let delivered = counted.delivered + others[HandledCounts.delivered]
    // After that: so what was taken for calls is among them. Pairs with `TaskDriver.willCall`.
    atomicMemoryFence(ordering: .acquiring)
    let forCalls = pump?.driver.calls ?? (taken: 0, begun: 0, dropped: 0)
    let left = forCalls.taken - forCalls.begun - forCalls.dropped
    // What waits when the consumer was closed does not begin any more.
    let waiting = left > 0 && delivers ? left : 0
    statistics.waiting += Int(waiting)
    let counts = EventThreadStatistics(
      delivered: forCalls.begun + delivered - min(delivered, forCalls.taken),
      skipped: counted.skipped + others[HandledCounts.skipped] + mailbox.supersededCount,
      cancelled: kept.dropped + forCalls.dropped + left - waiting)
    return ReceiverReading(mailbox: statistics, counts: counts)
  }

  /// How many calls of its task have not begun; they wait to, or never will, as the consumer was closed.
  private var callsLeft: UInt64 {
    guard let calls = pump?.driver.calls else { return 0 }
    return calls.taken - calls.begun - calls.dropped
  }

  /// How many events wait in the mailbox, or for calls of its task.
  var waitingWithCalls: Int { waiting + (delivers ? Int(callsLeft) : 0) }

  /// Whether it has ended, and its statistics do not change any more.
  var isSettled: Bool { ended.isOpen && !hasCalls }

  /// Whether calls of its task wait to begin.
  var hasCalls: Bool { callsLeft > 0 }

  /// How many events were taken: delivered or skipped. On the consumer's thread.
  var handled: UInt64 { held.pointee.taken }
}
