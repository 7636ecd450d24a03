// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore

/// Runs an actor on a thread of its own, counts the jobs that it is given, and can be told to keep
/// them.
public final class HeldExecutor: SerialExecutor {
  private struct State {
    var isHeld = false
    var kept: [UnownedJob] = []
    var givers: [UInt] = []
  }
  private let state = Guarded(State())
  private let queue = DispatchQueue(label: "actor")

  public init() {}

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isKept = state.withLock { state in
      state.givers.append(currentThread())
      if state.isHeld { state.kept.append(job) }
      return state.isHeld
    }
    if !isKept { start(job) }
  }

  /// The threads that have given it jobs since the last call, one entry for each job.
  public func takeGivers() -> [UInt] {
    state.withLock { state in
      defer { state.givers = [] }
      return state.givers
    }
  }

  /// Keeps the jobs that come from now on.
  public func hold() { state.withLock { $0.isHeld = true } }

  /// Runs the jobs that it has kept, without those that come meanwhile, and returns their number.
  public func runKept() -> Int {
    let kept = state.withLock { state in
      defer { state.kept = [] }
      return state.kept
    }
    queue.sync {
      for job in kept { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
    return kept.count
  }

  /// Runs the jobs that it has kept, and from now on each job as it comes.
  public func letGo() {
    let kept = state.withLock { state in
      state.isHeld = false
      defer { state.kept = [] }
      return state.kept
    }
    for job in kept { start(job) }
  }

  private func start(_ job: UnownedJob) {
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}

/// An actor on which tests run bodies of their own.
public actor Stage {
  public let executor = HeldExecutor()
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  public init() {}

  /// Runs a body on an actor and waits for it, on a thread that may wait.
  public nonisolated func run<Result>(
    _ body: @escaping (isolated (any Actor)?) -> Result
  ) -> Result {
    // The actor and the caller use both in turn, since the caller waits.
    nonisolated(unsafe) let body = body
    nonisolated(unsafe) var result: Result?
    let done = Gate()
    Task { [self] in
      await perform { result = body($0) }
      done.open()
    }
    done.pass()
    return result!
  }

  private func perform(_ body: @Sendable (isolated (any Actor)?) -> Void) { body(self) }
}
