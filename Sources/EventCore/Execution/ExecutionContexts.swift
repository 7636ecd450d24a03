// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// The execution contexts of one central (or of one `EventListener`): finds the one that is wanted,
/// makes it if nobody has yet, and ends it when nobody wants it any more.
package final class ExecutionContexts: @unchecked Sendable {
  // Everything that changes is under the lock. Lock order: this one, then a consumer's.

  /// What tells a shared context from the others. The identifiers are of objects that the context
  /// retains, but for the actor, which is compared again.
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
    /// The consumers of contexts that were ended, whose figures may still change,
    var ending: [Consumer] = []
    /// and the sum of those that have.
    var past = EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0)

    /// Counts a context among those that end: once, also if it was ended while it had users, the
    /// last of which leaves it later.
    mutating func retire(_ context: ExecutionContext) {
      guard !context.isRetired else { return }
      context.isRetired = true
      ending.append(context.consumer)
    }

    /// Adds up those that have ended. Returns them, to be let go of out of the lock.
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
  /// What is heard here: the events of a central, and those that are sent straight to the event
  /// thread or the listener whose contexts these are.
  private let sources: [any RouterCore]
  private let home: Home

  /// Where `.listenerThread` is.
  enum Home {
    /// A thread of their own, which starts with its first user. `upkeep`: what it does now and then.
    case ownThread(name: String, upkeep: @Sendable (Upkeep) -> Void)
    /// An event thread.
    case eventThread(Consumer)
  }

  /// Events per job. On the main queue and on actors others want their turn: with handlers of 50 µs
  /// a job takes 3 ms of a frame. Elsewhere it spreads the cost of a job, some 2 µs, over enough
  /// events.
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

  /// The context that a listener asks for; nil is the caller's own. `actor`: which the caller is on,
  /// if it says so.
  package func context(for executeOn: ExecuteEventOn?, on actor: (any Actor)?) -> ExecutionContext {
    switch executeOn {
    case nil:
      // What runs there need not be Sendable, so that it must be the caller's context and no other.
      require(
        actor != nil || Self.surroundings == .oneByOne,
        """
        Without executeOn: a callback is called where it is registered: on an actor, on the main thread or in \
        a handler of an event thread or of a listener's thread. This is a task, a dispatch queue or a thread to \
        which no event can come back. Register it in one of those places, or say where it is to be called: \
        executeOn: .listenerThread, for instance.
        """)
      return actor.map { self.actor($0) } ?? current()
    case .requesterThread: return actor.map { self.actor($0) } ?? current()
    case .listenerThread: return listenerThread()
    case .taskThread: return task()
    case .dispatchQueue(let queue): return self.queue(queue)
    }
  }

  /// The context that the caller runs in, by the rules of `ExecuteEventOn.requesterThread`.
  package func current() -> ExecutionContext {
    if let actor = RegisteringActor.value {
      return self.actor(actor)
    }
    if MainQueue.isCurrent {
      return mainQueue()
    }
    if let consumer = Consumer.current.value {
      return Self.driver(of: consumer)?.context(in: self) ?? thread(consumer)
    }
    return withUnsafeCurrentTask { $0 != nil } ? task() : listenerThread()
  }

  /// What runs where the caller's next code runs, by the same rules; nil if `current()` is a thread or
  /// a task that is made for it.
  private static var surroundings: Surroundings? {
    if RegisteringActor.value != nil || MainQueue.isCurrent { return .oneByOne }
    guard let consumer = Consumer.current.value else { return nil }
    return driver(of: consumer)?.surroundings ?? .oneByOne
  }

  /// Nil for a consumer with a thread of its own.
  private static func driver(of consumer: Consumer) -> (any ContextDriver)? {
    consumer.pump?.driver as? any ContextDriver
  }

  /// Whether `current()` is where the caller's next code runs, too.
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
    let context = shared(.task(ObjectIdentifier(driver))) { key in
      pumped(.task, driver, key, batch: Self.courteousBatch)
    }
    if let pump = context.consumer.pump {
      driver.start(pump)
    }
    return context
  }

  func thread(_ consumer: Consumer) -> ExecutionContext {
    if sources.allSatisfy({ consumer.registry.routes.includes($0) }) {
      // Its own mailbox. Not shared and not ended from here.
      return ExecutionContext(
        consumer.hooks.upkeep != nil
          ? .listenerThread : consumer.pump == nil ? .eventThread : .mainQueue,
        consumer, key: nil, endsWithUsers: false, host: self)
    }
    // A thread that listens elsewhere has no mailbox on these routers: one that its events drive.
    return shared(.thread(ObjectIdentifier(consumer))) { key in
      pumped(.eventThread, ThreadDriver(consumer), key, batch: Self.largeBatch)
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

  /// The open context of a key with one user more, or a new one.
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
        // Of an actor that is gone, where another one lies now.
        if let unusable = state.open[key] { state.retire(unusable) }
        state.open[key] = context
      }
      return (context, state.isClosed)
    }
    if isClosed {
      // The central is on its end, and this is one of its last handlers.
      context.consumer.close(whenEmpty: false)
      foldEnded()
    }
    return context
  }

  // MARK: Looking

  /// How many events wait in all contexts that are open. Those of event threads wait there.
  var waitingCount: Int {
    let contexts = state.withLock { Array($0.open.values) }
    return contexts.reduce(0) { $0 + $1.waitingCount }
  }

  /// What the contexts have done, those that have ended too. Event threads count for themselves.
  var statistics: EventThreadStatistics {
    let (statistics, ended) = state.withLock { state in
      let ended = state.fold()
      let consumers = state.open.values.map(\.consumer) + state.ending
      return (consumers.reduce(state.past) { $0 + $1.statistics }, ended)
    }
    return withExtendedLifetime(ended) { statistics }
  }

  // MARK: Ending

  /// One user less. The last one takes the context along, if it is of that kind.
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

  /// Ends all contexts and every later one. What waits is freed and counted (D10).
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
