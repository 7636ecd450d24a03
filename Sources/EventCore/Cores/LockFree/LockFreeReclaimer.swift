// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore
  import Synchronization

  /// Frees what the C core has retired: on a thread of the core's as soon as there is a consumer that no loop of the
  /// user's runs, and until then in the runs of the loops, so that a program with pumps alone has no other thread.
  enum LockFreeReclaimer {
    /// Nanoseconds after which a run of a loop frees no more.
    private static let budget: UInt64 = 50_000
    /// Relaxed, both: a run that still frees by itself helps the thread.
    private static let hasThread = Atomic<Bool>(false)
    private static let loops = Atomic<Int>(0)

    static func add(_ consumer: Consumer) {
      if consumer.isDrivenByLoop {
        loops.add(1, ordering: .relaxed)
      } else {
        startThread()
      }
    }

    static func startThread() {
      hasThread.store(true, ordering: .relaxed)
      evc_reclaimer_start()
    }

    /// The consumer's mailbox has been released. Loops that do not run free nothing, so the end of any of them does;
    /// after the last one nobody else would.
    static func removeLoop() {
      let isLast = loops.subtract(1, ordering: .relaxed).newValue == 0
      reclaim(for: isLast ? .max : budget)
      // What the first one freed may have retired something.
      if isLast { reclaim(for: .max) }
    }

    /// At the beginning of a run.
    static func reclaim() { reclaim(for: budget) }

    private static func reclaim(for budget: UInt64) {
      // What is left is for the next run.
      if !hasThread.load(ordering: .relaxed) { _ = evc_reclaim(budget) }
    }
  }
#endif
