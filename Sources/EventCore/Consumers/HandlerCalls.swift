// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The calls of a consumer's handlers: which handler is running, how many events were handled, and who
/// waits until a handler is not running.
///
/// Synchronization:
/// - `running`, `counts`: written by the consumer's thread, read by any.
/// - `requests`: has a mutex, locked for an append or a swap.
/// - `waits`: the consumer's thread only.
///
/// How `removeAndWait()` knows whether it has to wait: the consumer publishes a handler in `running` before
/// it reads the handler's `validFrom`; the caller writes `validFrom` before it reads `running`. With a full
/// fence on both sides, at least one sees what the other has written. The consumer's fence is the core's
/// `barrier`, which the caller executes for it, so that no event pays for a fence.
@usableFromInline
struct HandlerCalls: ~Copyable {
  private struct Requests {
    /// Handlers that have ended, to be freed.
    var dropped: [(receiver: Receiver, handler: HandlerState)] = []
    var waiting: [Latch] = []
    var hasEnded = false
  }

  /// Whether the core has a barrier that orders `running`, so that a plain store publishes it.
  @usableFromInline let hasBarrier: Bool
  /// The address of the state of the handler that is being called, or 0.
  @usableFromInline let running = Atomic<UInt>(0)
  /// The events that no probe counts, as `HandledCounts`.
  let counts = LineCounters()
  /// How often the consumer ran dry; counted only if there is upkeep.
  private let waits = Atomic<UInt64>(0)
  private let requests = Guarded(Requests())

  init(hasBarrier: Bool) {
    self.hasBarrier = hasBarrier
  }

  // MARK: The consumer's thread

  @inlinable
  @inline(__always)
  func willCall(at address: UInt) {
    if hasBarrier {
      // The reader executes the barrier on this thread. Releasing, pairs with `isRunning`: what the
      // previous handler did comes before the sight of the next one.
      running.store(address, ordering: .releasing)
    } else {
      running.store(address, ordering: .sequentiallyConsistent)
    }
  }

  /// Ends the call of the announced handler, before code that is not part of it.
  @inlinable
  @inline(__always)
  func didLeaveHandler() {
    // Releasing, pairs with `isRunning`: what the handler did comes before the sight of its end.
    running.store(0, ordering: .releasing)
  }

  /// Counts a wait. True when the upkeep is due.
  func countWait() -> Bool {
    let count = waits.load(ordering: .relaxed) &+ 1
    waits.store(count, ordering: .relaxed)
    return count % Upkeep.waitsBetween == 0
  }

  /// Opens the latches of all waiters. Returns the handlers to be freed, which runs user code. `andEnd`:
  /// the consumer has ended, and later requests are refused.
  func answer(andEnd isLast: Bool) -> [(receiver: Receiver, handler: HandlerState)] {
    let (dropped, waiting) = requests.withLock { requests in
      requests.hasEnded = requests.hasEnded || isLast
      defer {
        requests.dropped.removeAll()
        requests.waiting.removeAll()
      }
      return (requests.dropped, requests.waiting)
    }
    for latch in waiting {
      latch.open()
    }
    return dropped
  }

  // MARK: Any thread

  /// Leaves an ended handler to be freed by the next `answer`. False if the consumer has ended.
  func requestDrop(of handler: HandlerState, _ receiver: Receiver) -> Bool {
    requests.withLock { requests in
      if !requests.hasEnded { requests.dropped.append((receiver, handler)) }
      return !requests.hasEnded
    }
  }

  /// Whether an ended handler is running; nil for any, after the end of all. After a `fence` that followed the end.
  func isRunning(_ handler: HandlerState?) -> Bool {
    let address = running.load(ordering: .sequentiallyConsistent)
    return handler.map { $0.address == address } ?? (address != 0)
  }

  /// A latch that the next `answer` opens, for which the caller interrupts the mailbox; nil if the handler
  /// is not running.
  func waiter(for handler: HandlerState?) -> Latch? {
    guard isRunning(handler) else { return nil }
    let latch = Latch()
    let waits = requests.withLock { requests in
      if !requests.hasEnded { requests.waiting.append(latch) }
      return !requests.hasEnded
    }
    // Checked again: a pump answers when it returns, and sees this request if the handler runs until now.
    // If the handler has returned, the next pump may take long to come.
    return waits && isRunning(handler) ? latch : nil
  }
}

extension Consumer {
  /// Returns when no call of a handler that has been ended is running.
  func waitUntilDone(_ handler: HandlerState) {
    if isCurrent {
      require(
        calls.running.load(ordering: .relaxed) != handler.address,
        """
        removeAndWait() waits until its handler is not running, and was called inside that handler, \
        where it would wait for itself: call remove(), or end() in place of a scope's endAndWait().
        """)
      return
    }
    done(with: handler)?.wait()
  }

  /// The same for a task, without blocking its thread. A task is never inside a handler.
  func untilDone(_ handler: HandlerState) async {
    await done(with: handler)?.opened()
  }

  /// A latch that opens when an ended handler is not running any more, nil for all of them; nil if it is not running.
  func done(with handler: HandlerState?) -> Latch? {
    fence()
    let latch = calls.waiter(for: handler)
    if latch != nil { mailbox.interrupt() }
    return latch
  }

  /// The caller's fence between ending handlers and `isRunning`. One call serves all consumers whose core
  /// has the barrier. Any thread.
  func fence() {
    if calls.hasBarrier {
      _ = basis.core.parts.barrier()
    }
  }
}
