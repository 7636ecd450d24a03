// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// The execution contexts of one central, or of one `EventListener`: finds or makes the context of a place,
/// and ends it with its last user.
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
    /// The sum of the statistics of all consumers that have ended.
    var past = EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0)

    /// Counts a context among those that end, once: after `close` its last user retires it again.
    mutating func retire(_ context: ExecutionContext) {
      guard !context.isRetired else { return }
      context.isRetired = true
      ending.append(context.consumer)
    }

    /// Moves the statistics of ended consumers to `past`. Returns these consumers, to be released outside
    /// of the lock.
    mutating func fold() -> [Consumer] {
      let ended = ending.filter { $0.ended.isOpen }
      guard !ended.isEmpty else { return [] }
      past = ended.reduce(past) { $0 + $1.statistics }
      ending.removeAll { consumer in ended.contains { $0 === consumer } }
      return ended
    }
  }
  private let state = Guarded(State())
  private let core: EventCentral.Core
  /// The central's router, and the one for events that are sent to the event thread or the listener alone.
  private let sources: [any RouterCore]
  private let home: Home
  /// The central's router.
  var central: any RouterCore { sources[0] }

  /// What `.listenerThread` means.
  enum Home {
    /// A listener thread, which starts with its first user. `upkeep`: its periodic work.
    case ownThread(name: String, upkeep: @Sendable (Upkeep) -> Void)
    case eventThread(Consumer)
  }

  /// Events per job. The main queue and actors have other work: with handlers of 50 µs a job takes 3 ms of
  /// a frame. Elsewhere a batch spreads the cost of a job, some 2 µs, over enough events.
  static let courteousBatch = 64
  static let largeBatch = 512

  init(core: EventCentral.Core, sources: [any RouterCore], home: Home) {
    self.core = core
    self.sources = sources
    self.home = home
  }

  deinit {
    close()
  }

  // MARK: Getting one, with one user more

  /// The context that a listener asks for; nil is the caller's own. `actor`: the caller's, if it is on one.
  package func context(for executeOn: ExecuteEventOn?, on actor: (any Actor)?) -> ExecutionContext {
    switch executeOn {
    case nil:
      // The callback need not be Sendable, so it must not run elsewhere.
      require(
        actor != nil || Self.surroundings == .oneByOne,
        """
        Without executeOn: a callback is called where it is registered: on an actor, on the main thread or \
        in a handler of an event thread or of a listener's thread. This is a task, a dispatch queue or a \
        thread to which no event can come back. Register it in one of those places, or say where it is to be \
        called: executeOn: .listenerThread, for instance.
        """)
      fallthrough
    case .requesterThread: return actor.map { self.actor($0) } ?? current()
    case .listenerThread: return listenerThread()
    case .taskThread: return task()
    case .dispatchQueue(let queue): return self.queue(queue)
    case .pump(let place): return thread(place.consumer)
    }
  }

  /// The context of `ExecuteEventOn.requesterThread`, for a caller that is on no actor.
  package func current() -> ExecutionContext {
    if let actor = RegisteringActor.value {
      return self.actor(actor)
    }
    let consumer = Consumer.current.value
    // Before the main thread, whose loop it may be.
    if let consumer, consumer.isPumpedByLoop {
      return thread(consumer)
    }
    if MainQueue.isCurrent {
      return mainQueue()
    }
    if let consumer {
      return Self.driver(of: consumer)?.context(in: self) ?? thread(consumer)
    }
    return withUnsafeCurrentTask { $0 != nil } ? task() : listenerThread()
  }

  /// What else runs in the caller's place; nil if `current()` would be another place.
  private static var surroundings: Surroundings? {
    if RegisteringActor.value != nil || MainQueue.isCurrent { return .oneByOne }
    guard let consumer = Consumer.current.value else { return nil }
    return driver(of: consumer)?.surroundings ?? .oneByOne
  }

  /// Nil for a consumer that has a thread.
  private static func driver(of consumer: Consumer) -> (any ContextDriver)? {
    consumer.pump?.driver as? any ContextDriver
  }

  /// Whether `current()` is the caller's place.
  static var isCallerInPlace: Bool { surroundings.map { $0 != .nobodyElse } ?? false }

  package func listenerThread() -> ExecutionContext {
    switch home {
    case .eventThread(let consumer):
      return thread(consumer)
    case .ownThread(let name, let upkeep):
      return shared(.listenerThread) { key in
        let consumer = makeConsumer(nil, ConsumerHooks(upkeep: upkeep))
        startThread(named: name) { consumer.run() }
        return ExecutionContext(
          .listenerThread, consumer, key: key, endsWithUsers: false, host: self)
      }
    }
  }

  package func queue(_ queue: DispatchQueue) -> ExecutionContext {
    guard !MainQueue.isMain(queue) else { return mainQueue() }
    return shared(.queue(ObjectIdentifier(queue))) { key in
      pumped(.dispatchQueue(queue), QueueDriver(queue), key, batch: Self.largeBatch)
    }
  }

  package func mainQueue() -> ExecutionContext {
    shared(.mainQueue) { key in
      pumped(.mainQueue, QueueDriver(.main), key, batch: Self.courteousBatch)
    }
  }

  package func actor(_ actor: any Actor) -> ExecutionContext {
    if actor === MainActor.shared {
      // One order for all that runs on the main thread.
      return mainQueue()
    }
    return shared(.actor(ObjectIdentifier(actor))) { key in
      pumped(.actor, ActorDriver(actor), key, batch: Self.courteousBatch)
    }
  }

  package func task() -> ExecutionContext {
    let driver = TaskDriver()
    let context = task(driver)
    if let pump = context.consumer.pump {
      driver.start(pump)
    }
    return context
  }

  /// The context of a task that drives its consumer itself: of a sequence.
  func task(_ driver: TaskDriver) -> ExecutionContext {
    shared(.task(ObjectIdentifier(driver))) { key in
      pumped(.task, driver, key, batch: Self.courteousBatch)
    }
  }

  func thread(_ consumer: Consumer) -> ExecutionContext {
    if sources.allSatisfy({ consumer.registry.routes.includes($0) }) {
      // The thread's own mailbox. Not shared, and not ended by its users.
      return ExecutionContext(
        consumer.hooks.upkeep != nil ? .listenerThread : consumer.place,
        consumer, key: nil, endsWithUsers: false, host: self)
    }
    // The thread does not hear these routers. This mailbox does, and its jobs run as events of the thread.
    // In a pump one by one, so that its limits and deadlines hold.
    let isPump = consumer.isPumpedByLoop
    return shared(.thread(ObjectIdentifier(consumer))) { key in
      pumped(
        isPump ? .pump : .eventThread, ThreadDriver(consumer), key, batch: isPump ? 1 : Self.largeBatch)
    }
  }

  private func pumped(
    _ place: EventListenerContext, _ driver: any PumpDriver, _ key: Key, batch: Int
  ) -> ExecutionContext {
    let consumer = makeConsumer(ConsumerPump(driver, batch: batch), ConsumerHooks())
    return ExecutionContext(place, consumer, key: key, endsWithUsers: true, host: self)
  }

  private func makeConsumer(_ pump: ConsumerPump?, _ hooks: ConsumerHooks) -> Consumer {
    let direct = core.parts.makeRouter()
    return Consumer(
      core: core, routes: RouterGroup(sources + [direct]), direct: direct, strategy: .park, pump: pump,
      hooks: hooks)
  }

  /// Adds a user to the open context of a key, or makes the context.
  private func shared(_ key: Key, _ make: (Key) -> ExecutionContext) -> ExecutionContext {
    let (context, isClosed) = state.withLock { state in
      if let context = state.open[key], context.isUsable {
        context.users += 1
        return (context, state.isClosed)
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
    if isClosed {
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

  /// What the contexts have done, including those that have ended, and not counting event threads.
  var statistics: EventThreadStatistics {
    let (statistics, ended) = state.withLock { state in
      let ended = state.fold()
      let consumers = state.open.values.map(\.consumer) + state.ending
      return (consumers.reduce(state.past) { $0 + $1.statistics }, ended)
    }
    return withExtendedLifetime(ended) { statistics }
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
      context.consumer.close(whenEmpty: false)
      foldEnded()
    }
  }

  /// Ends all contexts, and later ones at once. What waits is freed and counted (D10).
  func close() {
    let contexts = state.withLock { state in
      state.isClosed = true
      defer { state.open.removeAll() }
      for context in state.open.values { state.retire(context) }
      return Array(state.open.values)
    }
    for context in contexts {
      context.consumer.close(whenEmpty: false)
    }
    foldEnded()
  }

  private func foldEnded() {
    let ended = state.withLock { $0.fold() }
    withExtendedLifetime(ended) {}
  }
}
