// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A hand-written mailbox and thread for each consumer; see `SwapMailbox`.
final class MutexSwapChannel<Event: BenchmarkEvent>: BatchChannel, LaneChannel {
  private let mailboxes: [SwapMailbox<Event>]
  // The last of them gets the event itself, the others a copy.
  private let last: SwapMailbox<Event>
  private let ended = DispatchSemaphore(value: 0)

  init(_ consumers: [[Handler]], lanes: Int = 1) {
    mailboxes = consumers.map { _ in SwapMailbox(lanes: lanes) }
    last = mailboxes[mailboxes.count - 1]
    for (mailbox, handlers) in zip(mailboxes, consumers) {
      startThread { [ended] in
        mailbox.run(handlers)
        ended.signal()
      }
    }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    for mailbox in mailboxes where mailbox !== last {
      mailbox.post(copy event)
    }
    last.post(event)
  }

  func send(batch: [Event]) {
    for mailbox in mailboxes {
      mailbox.post(batch: batch)
    }
  }

  @inline(__always)
  func send(_ event: consuming Event, lane: Int) {
    for mailbox in mailboxes where mailbox !== last {
      mailbox.post(copy event, lane: lane)
    }
    last.post(event, lane: lane)
  }

  func end() {
    for mailbox in mailboxes {
      mailbox.close()
    }
    for _ in mailboxes {
      ended.wait()
    }
  }
}
