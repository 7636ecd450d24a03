// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

// The announcement of each call, by which `removeAndWait()` finds out what it has to wait for.

extension Consumer {
  /// Returns when no call of a handler that has been ended is running.
  ///
  /// The consumer publishes a handler in `running` before it reads `validFrom`; the caller has
  /// written `validFrom` before it reads `running`. With a full fence on both sides at least one
  /// sees the other; the consumer's is the core's `barrier`, paid for here and not for each event.
  func waitUntilDone(_ handler: HandlerState) {
    if isCurrent {
      require(
        running.load(ordering: .relaxed) != handler.address,
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
    return isRunning(handler) ? control(whileRunning: handler.address) : nil
  }

  /// Between the end of handlers and the look whether they run; for all consumers of the process
  /// that have such a barrier. Any thread.
  func fence() {
    if hasBarrier {
      _ = core.barrier()
    }
  }

  /// Whether a call of a handler that had ended before a `fence()` is running. Any thread.
  func isRunning(_ handler: HandlerState) -> Bool {
    running.load(ordering: .sequentiallyConsistent) == handler.address
  }

  /// What opens when the consumer has been between two events, or has ended; nil if it has ended, or
  /// runs another handler.
  private func control(whileRunning address: UInt) -> Latch? {
    let latch = Latch()
    let waits = requests.withLock { requests in
      if !requests.hasEnded { requests.waiting.append(latch) }
      return !requests.hasEnded
    }
    // A pump looks at the requests when it leaves: it sees this one if it was in the handler until
    // now, and otherwise nobody may come by for a long time.
    guard waits, running.load(ordering: .sequentiallyConsistent) == address else { return nil }
    mailbox.interrupt()
    return latch
  }

  @inlinable
  @inline(__always)
  func willCall(_ handler: HandlerState) { willCall(at: handler.address) }

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
    // Releasing: as in `didCall`.
    running.store(0, ordering: .releasing)
  }

  @inline(__always)
  func didCall(_ called: Bool) {
    // Releasing: what the handler did, before a waiter sees it done.
    running.store(0, ordering: .releasing)
    // Only this thread writes the counters.
    let count: UInt64
    if called {
      count = delivered.load(ordering: .relaxed) &+ 1
      delivered.store(count, ordering: .relaxed)
    } else {
      count = skipped.load(ordering: .relaxed) &+ 1
      skipped.store(count, ordering: .relaxed)
    }
    if count % Upkeep.eventsBetween == 0 {
      upkeep?(.whileBusy)
    }
    if held.pointee.hasOwner { lookAtOwner() }
    if count % Held.events == 0 { letGoOfReferences() }
  }

  /// The same, where the type of the event is known.
  @inlinable
  @inline(__always)
  func didCallDirectly(_ called: Bool) {
    // Both as in `didCall`.
    running.store(0, ordering: .releasing)
    let count = delivered.load(ordering: .relaxed) &+ 1
    // Every so many events the rest of the work is done, in there: `Upkeep.eventsBetween` is a
    // multiple of these.
    guard called && count % Held.events != 0 && !held.pointee.hasOwner else {
      didCallAny(called)
      return
    }
    delivered.store(count, ordering: .relaxed)
  }

  @usableFromInline
  @inline(never)
  func didCallAny(_ called: Bool) {
    didCall(called)
  }
}
