// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// The execution contexts of one central, or of one `EventListener`: finds or makes the context of a place,
/// and ends it with its last user.
///
/// One file, though long: whatever changes `state` is in here.
package final class ExecutionContexts: @unchecked Sendable {
  // Everything that changes is under the lock. Lock order: this one, then a consumer's.

  /// Identifies a shared context. The identifiers are of objects that the context retains, except for an
  /// actor, which may be gone while its context is still open: `shared` checks that.
  enum Key: Hashable {
    case listenerThread
    case mainQueue
    case queue(ObjectIdentifier)
    case actor(ObjectIdentifier)
    case thread(ObjectIdentifier)
    case task(ObjectIdentifier)
  }

  private struct State {
    var open: [Key: ExecutionContext] = [:]
    var isClosed = false
    /// The consumers of retired contexts whose statistics may still change.
    var ending: [Consumer] = []
    /// Whether something waited when all were closed.
    var hasLost = false
    /// Of `async` listeners whose calls may be running.
    var calls: [ObjectIdentifier: Latch] = [:]
    /// The sum of the statistics of all consumers that have ended.
    var past = ReceiverReading()

    /// Counts a context among those that end, once: after `close` its last user retires it again.
    mutating func retire(_ context: ExecutionContext) {
      guard !context.isRetired else { return }
      context.isRetired = true
      ending.append(context.consumer)
    }

    /// Notes whether something waits at a consumer, which is about to be closed. No call of its task begins any more, and
    /// no drain takes it for one whose loop goes on to handle what waits.
    mutating func giveUp(_ consumer: Consumer) {
      if consumer.waitingWithCalls > 0 { hasLost = true }
      consumer.registry.close()
    }

    /// Moves the statistics of ended consumers to `past`. Returns these consumers, to be released outside
    /// of the lock.
    mutating func fold() -> [Consumer] {
      var ended: [Consumer] = []
      ending.removeAll { consumer in
        let isSettled = consumer.isSettled
        if isSettled { ended.append(consumer) }
        return isSettled
      }
      guard !ended.isEmpty else { return [] }
      for consumer in ended {
        past = past + consumer.lastFigures
        consumer.leaveInstruments()
      }
      return ended
    }
  }
  private let state = Guarded(State())
  let basis: CentralBasis
  /// Runs what would be concurrent in a deterministic central; nil in others.
  private let serial: SerialLoop?
  /// The central's router, and the one for events that are sent to the event thread or the listener alone.
  private let sources: [any RouterCore]
  /// How many events may wait in each context.
  private let capacity: EventMailboxCapacity
  private let home: Home
  /// The central's router.
  var central: any RouterCore { sources[0] }

  /// What `.listenerThread` means.
  enum Home {
    /// A listener thread, which starts with its first user. `upkeep`: its periodic work.
    case ownThread(name: String, upkeep: @Sendable (Upkeep) -> Void)
    case eventThread(Consumer)
  }

  /// That of the listener thread.
  var name: String {
    switch home {
    case .ownThread(let name, _): name
    case .eventThread(let consumer): consumer.probe.name
    }
  }

  /// Events per job. The main queue and actors have other work: with handlers of 50 µs a job takes 3 ms of
  /// a frame. Elsewhere a batch spreads the cost of a job, some 2 µs, over enough events.
  static let courteousBatch = 64
  static let largeBatch = 512

  init(
    _ basis: CentralBasis, _ serial: SerialLoop?, sources: [any RouterCore],
    capacity: EventMailboxCapacity = .unbounded, home: Home
  ) {
    self.basis = basis
    self.serial = serial
    self.capacity = capacity
    self.sources = sources
    self.home = home
  }

  deinit {
    close()
  }

  // MARK: Getting one, with one user more

  package func listenerThread() -> ExecutionContext {
    switch home {
    case .eventThread(let consumer):
      return thread(consumer)
    case .ownThread(let name, let upkeep):
      return shared(.listenerThread) { key in
        let consumer: Consumer
        if let serial {
          // By counting alone: how much time has passed since the last look differs from run to run.
          let hooks = ConsumerHooks(upkeep: { _ in upkeep(.whileBusy) }, trace: serial.name(name), name: name)
          consumer = makeConsumer(serial.makePump(), hooks)
        } else {
          consumer = makeConsumer(nil, ConsumerHooks(upkeep: upkeep, name: name))
          startThread(named: name) { consumer.run() }
        }
        return ExecutionContext(
          .listenerThread, consumer, key: key, endsWithUsers: false, host: self)
      }
    }
  }

  package func queue(_ queue: DispatchQueue) -> ExecutionContext {
    guard !MainQueue.isMain(queue) else { return mainQueue() }
    return shared(.queue(ObjectIdentifier(queue))) { key in
      pumped(.dispatchQueue(queue), QueueDriver(queue), key, batch: Self.largeBatch, named: queue.label)
    }
  }

  package func mainQueue() -> ExecutionContext {
    shared(.mainQueue) { key in
      pumped(.mainQueue, QueueDriver(.main), key, batch: Self.courteousBatch, named: "main")
    }
  }

  package func actor(_ actor: any Actor) -> ExecutionContext {
    if actor === MainActor.shared {
      // One order for all that runs on the main thread.
      return mainQueue()
    }
    require(
      serial == nil,
      """
      A deterministic central runs everything on one thread, inside EventCentral.run(limit:), and a \(type(of: actor)) \
      is an actor, which runs where its executor does: name another place with executeOn: (.listenerThread; for an \
      observer .notifyingThread), and have the handler do without the actor.
      """)
    return shared(.actor(ObjectIdentifier(actor))) { key in
      pumped(.actor, ActorDriver(actor), key, batch: Self.courteousBatch, named: "actor")
    }
  }

  package func task() -> ExecutionContext {
    let driver = TaskDriver()
    let context = task(driver, isUsers: false)
    if serial == nil, let pump = context.consumer.pump {
      driver.start(pump)
    }
    return context
  }

  /// The context of a task. One of the user's, which iterates over a sequence, runs nothing inside the runs of a
  /// deterministic central, and may have a bound of its own.
  func task(_ driver: TaskDriver, isUsers: Bool, capacity: EventMailboxCapacity? = nil) -> ExecutionContext {
    shared(.task(ObjectIdentifier(driver))) { key in
      let taken = isUsers && basis.carrier != nil ? TakenValue() : nil
      return pumped(
        .task, driver, key, batch: Self.courteousBatch, named: "task", isDrivenElsewhere: isUsers, capacity: capacity,
        taken: taken)
    }
  }

  func thread(_ consumer: Consumer) -> ExecutionContext {
    if sources.allSatisfy({ consumer.registry.routes.includes($0) }) {
      // The thread's own mailbox. Not shared, and not ended by its users.
      return ExecutionContext(consumer.place, consumer, key: nil, endsWithUsers: false, host: self)
    }
    // The thread does not hear these routers. This mailbox does, and its jobs run as events of the thread.
    // In a pump and in a deterministic central one by one, so that their limits and deadlines hold.
    let batch = consumer.isDrivenByLoop ? 1 : Self.largeBatch
    let context = shared(.thread(ObjectIdentifier(consumer))) { key in
      pumped(
        consumer.place, ThreadDriver(consumer), key, batch: batch, named: consumer.probe.name, isDrivenElsewhere: true)
    }
    consumer.add(guest: context.consumer)
    return context
  }

  /// `isDrivenElsewhere`: the jobs are events of another consumer, which runs in its own way.
  private func pumped(
    _ place: EventListenerContext, _ driver: any ContextDriver, _ key: Key, batch: Int, named name: String,
    isDrivenElsewhere: Bool = false, capacity: EventMailboxCapacity? = nil, taken: TakenValue? = nil
  ) -> ExecutionContext {
    let pump =
      isDrivenElsewhere ? nil : serial?.makePump(insteadOf: driver)
    // What a task of the user's takes is in no order with the rest, and so in no trace.
    let trace = serial.map { isDrivenElsewhere && driver is TaskDriver ? TraceName(nil, name) : $0.name(name) }
    let consumer = makeConsumer(
      pump ?? ConsumerPump(driver, batch: batch), ConsumerHooks(trace: trace, taken: taken, name: name), capacity)
    return ExecutionContext(place, consumer, key: key, endsWithUsers: true, host: self)
  }

  private func makeConsumer(
    _ pump: ConsumerPump?, _ hooks: ConsumerHooks, _ capacity: EventMailboxCapacity? = nil
  ) -> Consumer {
    let direct = basis.makeRouter()
    return Consumer(
      basis, routes: RouterGroup(sources + [direct]), direct: direct, strategy: .park,
      capacity: capacity ?? self.capacity, pump: pump, hooks: hooks)
  }

  /// Adds a user to the open context of a key, or makes the context.
  private func shared(_ key: Key, _ make: (Key) -> ExecutionContext) -> ExecutionContext {
    let (context, isLate) = state.withLock { state in
      if let context = state.open[key], context.isUsable {
        context.users += 1
        // A drain that has begun closes it, once it has handled what waits.
        return (context, false)
      }
      let context = make(key)
      if state.isClosed {
        state.retire(context)
      } else {
        // The context of an actor that is gone, and whose address a new actor has.
        if let unusable = state.open[key] { state.retire(unusable) }
        state.open[key] = context
      }
      return (context, state.isClosed)
    }
    if isLate {
      // The central is ending, and one of its last handlers has asked.
      context.consumer.close(whenEmpty: false)
      foldEnded()
    }
    return context
  }

  // MARK: Statistics

  /// How many events wait in all open contexts, not counting event threads.
  var waitingCount: Int {
    let contexts = state.withLock { Array($0.open.values) }
    return contexts.reduce(0) { $0 + $1.waitingCount }
  }

  /// Whether they take nothing more, and nothing waits or runs in them: their statistics do not change any more.
  var areSettled: Bool {
    state.withLock { state in
      state.isClosed && state.open.values.allSatisfy(\.consumer.isSettled) && state.ending.allSatisfy(\.isSettled)
        && state.calls.values.allSatisfy(\.isOpen)
    }
  }

  /// What the contexts have done, including those that have ended, and not counting event threads.
  var statistics: EventThreadStatistics {
    sum { state, consumers in consumers.reduce(state.past.counts) { $0 + $1.statistics } }
  }

  /// The same of the mailboxes.
  var mailboxStatistics: EventMailboxStatistics {
    sum { state, consumers in consumers.reduce(state.past.mailbox) { $0 + $1.mailboxStatistics } }
  }

  private func sum<Sum>(_ add: (State, [Consumer]) -> Sum) -> Sum {
    let (sum, ended) = state.withLock { state in
      let ended = state.fold()
      return (add(state, state.open.values.map(\.consumer) + state.ending), ended)
    }
    return withExtendedLifetime(ended) { sum }
  }

  // MARK: Ending

  /// Removes a user. The context ends with its last one if `endsWithUsers`.
  func leave(_ context: ExecutionContext) {
    guard let key = context.key else { return }
    let isLast = state.withLock { state in
      context.users -= 1
      guard context.users == 0, context.endsWithUsers else { return false }
      if state.open[key] === context {
        state.open[key] = nil
      }
      state.retire(context)
      return true
    }
    if isLast {
      // One that has ended by a drain may still have calls of a task to begin.
      if !context.consumer.registry.isOver { context.consumer.close(whenEmpty: false) }
      foldEnded()
    }
  }

  /// Ends all contexts, and later ones at once. What waits is freed and counted (D10).
  func close() {
    let contexts = state.withLock { state in
      state.isClosed = true
      defer { state.open.removeAll() }
      for context in state.open.values {
        // Unsubscribed before the look: later events are not accepted, and earlier ones are handled or found. In the
        // mutex: so a drain finds the context in `open`, or the result of the look in `hasLost`.
        context.consumer.registry.close(whenEmpty: true)
        state.giveUp(context.consumer)
        state.retire(context)
      }
      // Those that a drain has ended, with calls of their tasks left, may have lost their last user since.
      for consumer in state.ending where consumer.hasCalls { state.giveUp(consumer) }
      return Array(state.open.values)
    }
    for context in contexts {
      context.consumer.close(whenEmpty: false)
    }
    foldEnded()
  }

  /// Whether something waited when all were closed: before a drain, or beside it.
  var hasLost: Bool { state.withLock { $0.hasLost } }

  /// Accepts nothing more. Returns what is open once all that waits in the contexts has been handled. The caller closes.
  func closeWhenEmpty() -> [Latch] {
    let (open, ending, calls) = state.withLock { state in
      state.isClosed = true
      return (state.open.values.map(\.consumer), state.ending, state.calls.values)
    }
    // One that has nothing to do ends here: whatever drives it may never come again.
    let ends = open.compactMap { $0.closeAndEndIfIdle() ? $0.done(with: nil) : $0.ended }
    // What ends already has to return from its handler, and no more, unless its thread is drained: its loop may never
    // go on.
    return ends + ending.compactMap { $0.isDraining ? $0.ended : $0.done(with: nil) } + calls
  }

  /// Waits for all of these, at most until a time on the central's clock; nil is for ever. False if that came first, or
  /// the task was cancelled.
  nonisolated(nonsending) func opened(_ latches: [Latch], until deadline: UInt64?) async -> Bool {
    for latch in latches where !latch.isOpen {
      if let serial {
        guard await opened(latch, until: deadline ?? .max, in: serial) else { return false }
      } else {
        guard await latch.opened(until: deadline, by: basis.clock) else { return false }
      }
    }
    return true
  }

  /// Has drains wait for the calls of an `async` listener, until `didEnd`. Before its context is made, so that a drain
  /// which closes the context finds them.
  func willCall() -> Latch {
    let calls = Latch()
    state.withLock { $0.calls[ObjectIdentifier(calls)] = calls }
    return calls
  }

  /// Whether an `async` listener has calls that may run, or begin.
  var hasCalls: Bool { state.withLock { $0.calls.values.contains { !$0.isOpen } } }

  /// Whether a task that nobody here drives has not ended with its mailbox: an `async` listener's, or one of the user's,
  /// which iterates over a sequence.
  var hasTasks: Bool {
    state.withLock { state in
      let consumers = state.open.values.map(\.consumer) + state.ending
      return consumers.contains { $0.pump?.driver is TaskDriver && !$0.ended.isOpen }
    } || hasCalls
  }

  /// The listener has ended, and its last call has returned.
  func didEnd(_ calls: Latch) {
    calls.open()
    state.withLock { $0.calls[ObjectIdentifier(calls)] = nil }
    foldEnded()
  }

  private func foldEnded() {
    let ended = state.withLock { $0.fold() }
    withExtendedLifetime(ended) {}
  }
}
