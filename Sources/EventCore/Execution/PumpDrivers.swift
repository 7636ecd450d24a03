// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A driver as those know it who register something inside one of its jobs.
protocol ContextDriver: PumpDriver {
  /// What else runs where its jobs run.
  var surroundings: Surroundings { get }
  /// The context in which the caller's next code runs, with one user more.
  func context(in contexts: ExecutionContexts) -> ExecutionContext
}

/// What runs where the caller's code runs.
enum Surroundings {
  /// One consumer at a time.
  case oneByOne
  /// Perhaps several consumers side by side: a dispatch queue may be concurrent.
  case sideBySide
  /// The caller's consumer alone: a task, of which each listener has its own.
  case nobodyElse
}

/// Runs the jobs of a pump on a dispatch queue, serial or not: the pump sees to it that only one is
/// at work.
final class QueueDriver: ContextDriver {
  let queue: DispatchQueue

  init(_ queue: DispatchQueue) {
    self.queue = queue
  }

  func schedule(_ pump: ConsumerPump) {
    queue.async { pump.perform() }
  }

  var surroundings: Surroundings { .sideBySide }
  func context(in contexts: ExecutionContexts) -> ExecutionContext { contexts.queue(queue) }
}

/// Runs the jobs of a pump on an actor.
final class ActorDriver: ContextDriver {
  // Not retained: whether the actor lives is not for its listeners to say.
  private weak let weakActor: (any Actor)?

  init(_ actor: any Actor) {
    weakActor = actor
  }

  func schedule(_ pump: ConsumerPump) {
    guard let actor = weakActor else {
      // Not here: what ends with the consumer is user code, and this is a dispatch.
      Task { pump.abandon() }
      return
    }
    Self.startFromAnywhere(pump, actor)
  }

  /// Starts a task that belongs to the actor from the start, which makes it one job of the actor's
  /// executor. A task that had to go there would be a job of the global executor first.
  private static func start(_ pump: ConsumerPump, on actor: isolated any Actor) {
    Task {
      // Captured, which is what makes it the actor's. It retains the actor until it has run.
      _ = actor
      pump.perform()
    }
  }

  /// `start` for those who are not on the actor. The type says that it may run nowhere else; the
  /// only thing that it does there is to make the task, and that touches nothing which the actor
  /// guards.
  private static let startFromAnywhere = unsafeBitCast(
    start as @Sendable (ConsumerPump, isolated any Actor) -> Void,
    to: (@Sendable (ConsumerPump, any Actor) -> Void).self)

  var canRun: Bool { weakActor != nil }
  var surroundings: Surroundings { .oneByOne }

  func context(in contexts: ExecutionContexts) -> ExecutionContext {
    // Its handlers run on it, so that it is there.
    weakActor.map { contexts.actor($0) } ?? contexts.listenerThread()
  }
}

/// Runs the jobs of a pump in one task that lives as long as the consumer and sleeps between two
/// jobs.
final class TaskDriver: ContextDriver {
  private struct State {
    /// The task, while it sleeps.
    var sleeper: UnsafeContinuation<Void, Never>?
    /// A job came before the task went to sleep.
    var isDue = false
    var isOver = false
  }
  private let state = Guarded(State())

  /// Starts the task. It inherits priority and task-local values of the caller.
  func start(_ pump: ConsumerPump) {
    Task {
      while await nextJob() {
        pump.perform()
      }
    }
  }

  func schedule(_ pump: ConsumerPump) {
    wake { $0.isDue = true }
  }

  func finish() {
    wake { $0.isOver = true }
  }

  var surroundings: Surroundings { .nobodyElse }
  func context(in contexts: ExecutionContexts) -> ExecutionContext { contexts.task() }

  private func wake(_ change: (inout State) -> Void) {
    let sleeper = state.withLock { state in
      change(&state)
      defer { state.sleeper = nil }
      return state.sleeper
    }
    sleeper?.resume()
  }

  /// Returns when there is a job to do. False if there is none any more.
  private func nextJob() async -> Bool {
    // A job that follows the last one at once lets the executor's others go first.
    if state.withLock({ $0.isDue && !$0.isOver }) {
      await Task.yield()
    }
    await withUnsafeContinuation { continuation in
      let goesOn = state.withLock { state in
        if state.isDue || state.isOver { return true }
        state.sleeper = continuation
        return false
      }
      if goesOn { continuation.resume() }
    }
    return state.withLock { state in
      state.isDue = false
      return !state.isOver
    }
  }
}

/// Runs the jobs of a pump as events of another consumer: in the handlers of an event thread.
final class ThreadDriver: ContextDriver {
  private let consumer: Consumer

  init(_ consumer: Consumer) {
    self.consumer = consumer
  }

  func schedule(_ pump: ConsumerPump) {
    let job = Job(pump)
    // False if the thread has ended: then the job has been freed, as when it ends later.
    _ = consumer.post { job.perform() }
  }

  /// One job, which the thread's mailbox may free instead of having it done.
  private final class Job: Sendable {
    private let pump: ConsumerPump
    private let isDone = Atomic<Bool>(false)

    init(_ pump: ConsumerPump) {
      self.pump = pump
    }

    func perform() {
      // Relaxed: the reference that the closure holds orders it before the end.
      isDone.store(true, ordering: .relaxed)
      pump.perform()
    }

    deinit {
      guard !isDone.load(ordering: .relaxed) else { return }
      // Not here, as above.
      Task { [pump] in pump.abandon() }
    }
  }

  var canRun: Bool { consumer.isOpen }
  var surroundings: Surroundings { .oneByOne }
  func context(in contexts: ExecutionContexts) -> ExecutionContext { contexts.thread(consumer) }
}
