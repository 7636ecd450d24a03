// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A driver of an execution context, inside whose jobs handlers may register listeners.
protocol ContextDriver: PumpDriver {
  /// What else runs where the driver's jobs run.
  var surroundings: Surroundings { get }
  /// The context, in `contexts`, of the place in which the driver's jobs run. Adds a user.
  func context(in contexts: ExecutionContexts) -> ExecutionContext
}

/// Which consumers run in one place.
enum Surroundings {
  /// One at a time.
  case oneByOne
  /// Perhaps several at the same time: a dispatch queue may be concurrent.
  case sideBySide
  /// A single one: each listener has its own task.
  case nobodyElse
}

/// Runs the jobs of a pump on a dispatch queue, which may be concurrent: the pump runs one job at a time.
final class QueueDriver: ContextDriver {
  let queue: DispatchQueue

  init(_ queue: DispatchQueue) {
    self.queue = queue
  }

  func schedule(_ pump: ConsumerPump) {
    queue.async { pump.perform() }
  }

  var target: DispatchQueue? { queue }
  var surroundings: Surroundings { .sideBySide }
  func context(in contexts: ExecutionContexts) -> ExecutionContext { contexts.queue(queue) }
}

/// Runs the jobs of a pump on an actor.
final class ActorDriver: ContextDriver {
  // Not retained: listeners do not keep their actor alive.
  private weak let weakActor: (any Actor)?

  /// Whether a job runs on the actor, and is to be followed by another one.
  private enum Turn: UInt8, AtomicRepresentable {
    case none, running, goesOn
  }
  private let turn = Atomic<Turn>(.none)

  init(_ actor: any Actor) {
    weakActor = actor
  }

  func schedule(_ pump: ConsumerPump) {
    guard let actor = weakActor else {
      // In a task, since the end of the consumer runs user code, and this is a dispatch (D5).
      Task { pump.close(whenEmpty: false) }
      return
    }
    Self.startFromAnywhere(self, pump, actor)
  }

  /// A default actor keeps its thread of the pool for as long as it has jobs: with as many overloaded actors as there
  /// are processors, no other task would begin. So after a batch the next job comes by the global executor, behind what
  /// waits there. The other executors' order is their owners', and a pump's runs are to find the job at once.
  func goOn(_ pump: ConsumerPump) {
    guard let actor = weakActor, Self.isOfThePool(actor) else { return schedule(pump) }
    // The job that runs sees it as it ends. Relaxed, as all of `turn`: jobs acquire what they need from the pump's state.
    let isSeen = turn.compareExchange(expected: .running, desired: .goesOn, ordering: .relaxed).exchanged
    if !isSeen { follow(pump) }
  }

  /// Starts a task that runs jobs until nothing is left, or the actor has ended: between two of them it does not retain
  /// the actor.
  private func follow(_ pump: ConsumerPump) {
    Task.detached { [self] in
      while await runNext(pump) { await Task.yield() }
    }
  }

  /// Its reference to the actor ends with this call.
  private func runNext(_ pump: ConsumerPump) async -> Bool {
    guard let actor = weakActor else {
      pump.close(whenEmpty: false)
      return false
    }
    return await run(pump, on: actor)
  }

  /// - Returns: Whether another job is to follow.
  private func run(_ pump: ConsumerPump, on actor: isolated any Actor) -> Bool {
    turn.store(.running, ordering: .relaxed)
    pump.perform()
    return turn.exchange(.none, ordering: .relaxed) == .goesOn
  }

  /// Whether it is a default actor.
  private static func isOfThePool(_ actor: any Actor) -> Bool {
    // By the ABI two words: an identity, and what implements the executor, which is nothing for default actors alone.
    unsafeBitCast(actor.unownedExecutor, to: (UInt, UInt).self).1 == 0
  }

  /// Starts a task on the actor, as one job of the actor's executor. A task that only awaits the actor
  /// would first be a job of the global executor. Detached, since it handles the events of many dispatchers: it has the
  /// task-local values and the priority of none.
  private static func start(_ driver: ActorDriver, _ pump: ConsumerPump, on actor: isolated any Actor) {
    nonisolated(unsafe) let job: @isolated(any) () async -> Void = {
      // The task alone has this closure, which runs on the actor alone. The capture puts it there, and retains the actor
      // until the task has run.
      _ = actor
      if driver.run(pump, on: actor) { driver.follow(pump) }
    }
    Task.detached(operation: job)
  }

  /// `start` without its isolation, for callers that are not on the actor. That is safe, since all it does
  /// is to make the task, which uses nothing that the actor guards.
  private static let startFromAnywhere = unsafeBitCast(
    start as @Sendable (ActorDriver, ConsumerPump, isolated any Actor) -> Void,
    to: (@Sendable (ActorDriver, ConsumerPump, any Actor) -> Void).self)

  var canRun: Bool { weakActor != nil }
  var surroundings: Surroundings { .oneByOne }

  func context(in contexts: ExecutionContexts) -> ExecutionContext {
    // The caller runs on the actor, which is therefore alive.
    weakActor.map { contexts.actor($0) } ?? contexts.listenerThread()
  }
}

/// Runs the jobs of a pump in one task, which lives as long as the consumer and sleeps between jobs. The task is one of
/// its own (`start`), or the user's, which iterates over a sequence.
@usableFromInline
final class TaskDriver: ContextDriver {
  private struct State {
    /// The task, while it sleeps.
    var sleeper: UnsafeContinuation<Void, Never>?
    /// A job has come that the task has not begun yet.
    var isDue = false
    var isOver = false
  }
  private let state = Guarded(State())
  /// Of the events that were taken for calls: all, those whose calls have begun, and those whose calls never do.
  private let takenForCalls = Atomic<UInt64>(0)
  private let begunCalls = Atomic<UInt64>(0)
  private let droppedCalls = Atomic<UInt64>(0)

  /// Starts the task, which inherits the caller's priority and task-local values.
  func start(_ pump: ConsumerPump) {
    Task {
      while await nextJob() {
        pump.perform()
        // If the next job is due already, lets the executor's other tasks run first.
        if state.withLock({ $0.isDue && !$0.isOver }) {
          await Task.yield()
        }
      }
    }
  }

  func schedule(_ pump: ConsumerPump) { rouse() }

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

  /// An event was taken for a call, which follows, or does not. In the handler of an `async` listener's mailbox, and so
  /// before the consumer counts the event, and before the mailbox can end.
  @usableFromInline
  func willCall() {
    takenForCalls.add(1, ordering: .relaxed)
    // Pairs with that of `Consumer.figures`: who finds the event counted as delivered finds it here.
    atomicMemoryFence(ordering: .releasing)
  }

  /// The call begins, or never does.
  func didCall(_ hasBegun: Bool) {
    // Releasing, pairs with `calls`: who finds the call finds its event among those that were taken.
    if hasBegun { begunCalls.add(1, ordering: .releasing) } else { droppedCalls.add(1, ordering: .releasing) }
  }

  var calls: (taken: UInt64, begun: UInt64, dropped: UInt64) {
    let (begun, dropped) = (begunCalls.load(ordering: .acquiring), droppedCalls.load(ordering: .acquiring))
    return (takenForCalls.load(ordering: .relaxed), begun, dropped)
  }

  /// Makes the task look for what it waits for, without a job.
  func rouse() {
    wake { $0.isDue = true }
  }

  /// Waits for a job. False if the consumer has ended. One task at a time.
  func nextJob() async -> Bool {
    await withUnsafeContinuation { continuation in
      let goesOn = state.withLock { state in
        if state.isDue || state.isOver { return true }
        require(
          state.sleeper == nil,
          """
          An iterator of an EventSequence belongs to one task at a time, and two tasks wait with copies of one: give \
          each task a sequence of its own by events(on:), and each gets every event.
          """)
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

/// Runs the jobs of a pump as events of another consumer, its host: an event thread.
final class ThreadDriver: ContextDriver {
  private let consumer: Consumer
  var host: Consumer? { consumer }

  init(_ consumer: Consumer) {
    self.consumer = consumer
  }

  func schedule(_ pump: ConsumerPump) {
    // A host that takes no more ends its guests itself (`ConsumerGuests`).
    _ = consumer.post(guest: pump)
  }

  func finish() {
    consumer.guests.value?.didEnd(ObjectIdentifier(self), isHostOpen: consumer.isOpen)
  }

  /// As the host: an `EventPump` frees its closures itself.
  var lends: Bool { consumer.pump?.driver.lends ?? true }
  var isLoop: Bool { consumer.isDrivenByLoop }
  /// Until the host, on its thread, ends its guests.
  var endsInItsJobs: Bool { !lends && !consumer.isCurrent && consumer.guests.value?.hasEnded != true }
  var surroundings: Surroundings { .oneByOne }
  func context(in contexts: ExecutionContexts) -> ExecutionContext { contexts.thread(consumer) }
}
