// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A receiver that does nothing, and tells each time that somebody has looked at it.
public final class LookedAt: EventReceiver {
  public let gate = Gate()

  public init() {}

  public var receiverStatistics: EventThreadStatistics {
    EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0)
  }

  public var mailboxStatistics: EventMailboxStatistics {
    gate.open()
    return EventMailboxStatistics(accepted: 0, refused: 0, dropped: 0, waiting: 0, highWaterMark: 0)
  }
}
