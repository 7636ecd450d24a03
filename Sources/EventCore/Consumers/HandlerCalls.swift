// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The calls of a consumer's handlers: which of them runs now, how many events they were called for,
/// and who waits until one does not run any more.
///
/// Who touches what:
/// - `running`, `delivered`, `skipped`: written by the consumer's thread, read by anybody.
/// - `requests`: under its mutex, held for an append or a swap.
/// - `waits`: the consumer's thread only.
///
/// How `removeAndWait()` finds out what it has to wait for: the consumer publishes a handler in
/// `running` before it reads the handler's `validFrom`; the caller has written `validFrom` before it
/// reads `running`. With a full fence on both sides at least one sees the other; the consumer's is
/// the core's `barrier`, paid for by the caller and not for each event.
@usableFromInline
struct HandlerCalls: ~Copyable {
  private struct Requests {
    /// Handlers that have ended, to be freed.
    var dropped: [(receiver: Receiver, handler: HandlerState)] = []
    var waiting: [Latch] = []
    var hasEnded = false
  }

  /// Whether the core's barrier orders `running`, so that publishing it costs a plain store.
  @usableFromInline let hasBarrier: Bool
  /// The address of the state of the handler that is being called, or 0.
  @usableFromInline let running = Atomic<UInt>(0)
  @usableFromInline let delivered = Atomic<UInt64>(0)
  let skipped = Atomic<UInt64>(0)
  /// How often the consumer ran dry; counted for the upkeep alone.
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
      // Whoever reads it has made the barrier on this thread. Releasing: what the handler before it
      // did, before a waiter sees that it is another's turn.
      running.store(address, ordering: .releasing)
    } else {
      running.store(address, ordering: .sequentiallyConsistent)
    }
  }

  /// A handler has returned, and what follows is not part of it. Inside its call.
  @inlinable
  @inline(__always)
  func didLeaveHandler() {
    // Releasing: what the handler did, before a waiter sees it done.
    running.store(0, ordering: .releasing)
  }

  /// Ends the calls for an event, and counts it. Returns how many there were of the kind.
  @inline(__always)
  func count(_ called: Bool) -> UInt64 {
    didLeaveHandler()
    // Only this thread writes the counters.
    if called {
      let count = delivered.load(ordering: .relaxed) &+ 1
      delivered.store(count, ordering: .relaxed)
      return count
    } else {
      let count = skipped.load(ordering: .relaxed) &+ 1
      skipped.store(count, ordering: .relaxed)
      return count
    }
  }

  /// The consumer runs dry. True when the upkeep is due.
  func countWait() -> Bool {
    let count = waits.load(ordering: .relaxed) &+ 1
    waits.store(count, ordering: .relaxed)
    return count % Upkeep.waitsBetween == 0
  }

  /// Lets everybody go on who waits. Returns the handlers that are to be freed, which is user code.
  /// `andEnd`: nobody waits here from now on.
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

  /// Has a handler that has ended freed by `answer`. False if the consumer has ended.
  func requestDrop(of handler: HandlerState, _ receiver: Receiver) -> Bool {
    requests.withLock { requests in
      if !requests.hasEnded { requests.dropped.append((receiver, handler)) }
      return !requests.hasEnded
    }
  }

  /// Whether a call of a handler that had ended before a fence is running.
  func isRunning(_ handler: HandlerState) -> Bool {
    running.load(ordering: .sequentiallyConsistent) == handler.address
  }

  /// What the next `answer` opens, for which the caller has to ask; nil if the handler does not run.
  func waiter(for handler: HandlerState) -> Latch? {
    guard isRunning(handler) else { return nil }
    let latch = Latch()
    let waits = requests.withLock { requests in
      if !requests.hasEnded { requests.waiting.append(latch) }
      return !requests.hasEnded
    }
    // A pump looks at the requests when it leaves: it sees this one if it was in the handler until
    // now, and otherwise nobody may come by for a long time.
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

  /// The same for a task, whose thread it does not block. A task is inside no handler.
  func untilDone(_ handler: HandlerState) async {
    await done(with: handler)?.opened()
  }

  /// What opens when a handler that has ended is not running any more; nil if it is not running.
  private func done(with handler: HandlerState) -> Latch? {
    fence()
    let latch = calls.waiter(for: handler)
    if latch != nil { mailbox.interrupt() }
    return latch
  }

  /// Between the end of handlers and the look whether they run; for all consumers of the process
  /// that have such a barrier. Any thread.
  func fence() {
    if calls.hasBarrier {
      _ = core.parts.barrier()
    }
  }
}
