// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What a consumer knows of the jobs of Swift's runtime that it runs: which tasks prefer its thread.
///
/// A job that comes by way of an actor does not tell, so that is a guess, which begins with no. A wrong one costs a job
/// and nothing else. It shows: the runtime then posts the very job that is running, to the executor on which it runs;
/// so from there on the guess for this task is the other one.
final class ConsumerJobs: @unchecked Sendable {
  // `running` is atomic; the rest is the consumer's thread's alone, which `isRunning` tells from others.

  /// The address of the job that is running, or 0. Relaxed: who finds its own job there also asks whether it is on the
  /// consumer's thread.
  private let running = Atomic<UInt>(0)
  /// The addresses of tasks that prefer the thread, each where its hash says, in the place of an earlier one. Empty
  /// before the first guess that was wrong. Another task may have the address of one that has ended.
  private var preferring: [UInt] = []

  private static let bits = 9

  /// Whether a job is posted while it runs. `isCurrent`: whether the caller is on the consumer's thread.
  func isRunning(_ job: UnownedJob, _ isCurrent: @autoclosure () -> Bool) -> Bool {
    running.load(ordering: .relaxed) == job.address && isCurrent()
  }

  // MARK: The consumer's thread

  /// Whether the task of a job prefers the thread, as far as is known.
  func prefers(_ job: UnownedJob) -> Bool {
    !preferring.isEmpty && preferring[Self.place(of: job)] == job.address
  }

  /// Notes that this was wrong.
  func didMistake(_ job: UnownedJob) {
    if preferring.isEmpty { preferring = Array(repeating: 0, count: 1 << Self.bits) }
    preferring[Self.place(of: job)] = prefers(job) ? 0 : job.address
  }

  /// Runs `body`, which runs a job. It may run another one inside, if it drives a pump.
  func running(_ job: UnownedJob, _ body: () -> Void) {
    let before = running.load(ordering: .relaxed)
    running.store(job.address, ordering: .relaxed)
    body()
    running.store(before, ordering: .relaxed)
  }

  private static func place(of job: UnownedJob) -> Int {
    // The upper bits of a product depend on all bits of the address: the tasks of a group lie at equal distances.
    Int(truncatingIfNeeded: (UInt64(job.address) &* 0x9E37_79B9_7F4A_7C15) >> UInt64(64 - bits))
  }
}

extension UnownedJob {
  /// Identifies a task for as long as it lives.
  fileprivate var address: UInt { unsafeBitCast(self, to: UInt.self) }
}
