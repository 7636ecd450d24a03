// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A thread that handles events: what is dispatched to its event types waits in its mailbox, and
/// its callbacks run one at a time on the thread.
///
/// ```swift
/// final class TemperatureProcessor: EventThread, @unchecked Sendable {
///   override func registerEventListeners() {
///     addEventCallback(TemperatureProcessor.onTemperature)
///   }
///
///   func onTemperature(_ event: TemperatureEvent) {
///     print(event.temperatureInCelsius)
///   }
/// }
/// ```
///
/// The thread starts with the initialiser and ends when its last reference goes (D9), or with
/// ``cancel()``. A callback that retains the thread, as a bound method
/// (`addEventCallback(onTemperature, …)`) does, keeps it alive until ``cancel()``; a method without
/// its object, as above, does not.
open class EventThread: EventListenable, @unchecked Sendable {
  // All stored properties are constant; what changes is the consumer's, which says who touches
  // what. A subclass guards its own state: its callbacks run on one thread, its other methods
  // anywhere.

  /// Where this thread gets its events from.
  public let central: EventCentral
  let consumer: Consumer
  @usableFromInline let direct: any RouterCore
  /// What a module on top of this one keeps with a thread: the observers of EventDrivenSwift, with the
  /// first of them.
  package let attachment = LazyReference<AnyObject>()
  private let ownListener = OwnedListener()
  /// Whether somebody gave up what waits. Releasing, before the mailbox is closed, and acquiring.
  private let givenUp = Atomic<Bool>(false)

  /// Starts the thread on the shared central and calls ``registerEventListeners()``.
  ///
  /// Required, so that `EventPool<SomeThread>(capacity: 5)` can make its threads. A subclass with
  /// initialisers of its own says how it is made without parameters, or that it cannot be:
  ///
  /// ```swift
  /// @available(*, unavailable, message: "needs a database")
  /// required init() { preconditionFailure("needs a database") }
  /// ```
  ///
  /// and is then put into a pool by a closure
  /// (``EventPool/init(capacity:balancer:scaler:on:name:make:)``).
  ///
  /// **Threads**: any.
  public required init() {
    let membership = PoolConstruction.takeMembership(for: Self.self, on: .shared)
    central = membership?.central ?? .shared
    direct = membership?.direct ?? central.core.parts.makeRouter()
    consumer = Self.makeConsumer(central, direct, membership, .park)
    begin(membership, name: nil)
  }

  /// Starts the thread and calls ``registerEventListeners()``.
  ///
  /// - Parameters:
  ///   - central: Where its events are dispatched. A thread of a pool gets its events from the
  ///     pool, and names the pool's central or none.
  ///   - waitStrategy: What it does while nothing waits.
  ///   - name: How debuggers show it; nil takes the name of the class.
  ///
  /// **Threads**: any. The callbacks may be called before it returns, as soon as events are
  /// dispatched.
  public init(
    on central: EventCentral = .shared, waitStrategy: EventWaitStrategy = .park,
    name: String? = nil
  ) {
    let membership = PoolConstruction.takeMembership(for: Self.self, on: central)
    self.central = membership?.central ?? central
    direct = membership?.direct ?? self.central.core.parts.makeRouter()
    consumer = Self.makeConsumer(self.central, direct, membership, waitStrategy)
    begin(membership, name: name)
  }

  private static func makeConsumer(
    _ central: EventCentral, _ direct: any RouterCore, _ membership: PoolMembership?,
    _ strategy: EventWaitStrategy
  ) -> Consumer {
    Consumer(
      core: central.core, routes: membership?.routes ?? RouterGroup([central.router, direct]), direct: direct,
      strategy: strategy, hooks: ConsumerHooks(member: membership?.member, shared: membership?.shared))
  }

  private func begin(_ membership: PoolMembership?, name: String?) {
    consumer.setOwner(self)
    consumer.asThread { registerHandlers() }
    startThread(named: name ?? membership?.name ?? "\(Self.self)") { [consumer] in
      consumer.run()
      membership?.didEnd()
    }
  }

  /// For a subclass that has no thread: `pump` drives its callbacks.
  init(on central: EventCentral, pump: ConsumerPump) {
    self.central = central
    direct = central.core.parts.makeRouter()
    consumer = Consumer(
      core: central.core, routes: RouterGroup([central.router, direct]), direct: direct, strategy: .park,
      pump: pump)
    consumer.setOwner(self)
    registerHandlers()
  }

  private func registerHandlers() {
    registerEventListeners()
    for method in eventMethods(of: self) {
      method.register(thread: self)
    }
  }

  deinit {
    // Wakes the thread, which holds the consumer and not this object, and frees itself.
    consumer.close(whenEmpty: false)
  }

  /// Override to register callbacks with `addEventCallback`. Called once, by the
  /// initialiser; before the thread handles its first event.
  ///
  /// **Threads**: called on the thread that runs the initialiser. It may ``cancel()``; to wait for the
  /// end, which only what follows it can bring about, traps.
  open func registerEventListeners() {}

  // MARK: Ending

  /// Ends the thread: the callback that runs finishes, what waits is freed and counted (D10).
  ///
  /// **Threads**: any, also inside a callback. Returns at once; an idle thread wakes for it at
  /// once.
  public func cancel() {
    giveUp()
  }

  /// Ends the thread without what waits.
  func giveUp() {
    givenUp.store(true, ordering: .releasing)
    consumer.close(whenEmpty: false)
    ownListener.end()
  }

  /// After its end: ends what is registered `on:` it, and tells whether it handled what was dispatched
  /// before.
  func finish() -> Bool {
    ownListener.end()
    return hasHandledAll
  }

  /// After its end: whether it handled what was dispatched before.
  ///
  /// What is freed although nobody gave up was being dispatched by another thread while this one
  /// ended: it is counted, and nothing that a drain promises.
  var hasHandledAll: Bool {
    !isGivenUp || consumer.mailbox.counts().dropped == 0
  }

  var isGivenUp: Bool { givenUp.load(ordering: .acquiring) }

  /// Ends the thread after it has handled what waits; what is dispatched from now on it does not
  /// get, not even from its own handlers.
  ///
  /// - Parameter deadline: When to give up: what still waits then is freed and counted, as by
  ///   ``cancel()``.
  /// - Returns: True if everything that was dispatched before was handled in time. What another
  ///   thread is dispatching at the very moment may be handled, refused, or freed and counted.
  ///
  /// **Threads**: any but the thread itself, where it would wait for itself and traps; so in
  /// ``registerEventListeners()``, which the thread waits for.
  @available(*, noasync, message: "It blocks its thread: write await drain(until:).")
  @discardableResult
  public func drain(until deadline: DispatchTime = .distantFuture) -> Bool {
    refuseOnOwnThread("drain(until:)", instead: "cancel()")
    consumer.close(whenEmpty: true)
    if consumer.ended.wait(until: deadline.limit) {
      return finish()
    }
    giveUp()
    return false
  }

  /// Ends the thread after it has handled what waits, without blocking the thread of the task.
  ///
  /// - Parameter deadline: When to give up, as for the form that blocks. A task that is cancelled
  ///   gives up at once.
  /// - Returns: As the form that blocks.
  ///
  /// **Threads**: any task or actor.
  @discardableResult
  public func drain(until deadline: DispatchTime = .distantFuture) async -> Bool {
    consumer.close(whenEmpty: true)
    if await consumer.ended.opened(until: deadline.limit) {
      return finish()
    }
    giveUp()
    return false
  }

  /// Waits until the thread has ended, without blocking the thread of the task. Does not end it.
  ///
  /// **Threads**: any task or actor.
  public func join() async {
    await consumer.ended.opened()
  }

  /// Waits until the thread has ended. Does not end it.
  ///
  /// **Threads**: any but the thread itself, as for `drain(until:)`.
  @available(*, noasync, message: "It blocks its thread: write await join().")
  public func join() {
    refuseOnOwnThread("join()", instead: "cancel()")
    consumer.ended.wait()
  }

  private func refuseOnOwnThread(_ name: StaticString, instead: StaticString) {
    require(
      !consumer.isCurrent,
      """
      \(name) waits for the end of its event thread, and was called on that thread, or in its \
      registerEventListeners() before it began, where it would wait for itself: call \(instead).
      """)
  }

  // MARK: Listeners

  /// The listeners that are registered `on:` this thread. They hear what its callbacks hear, the
  /// events of its central and those that are sent to it alone, and end with its last reference, by
  /// ``cancel()`` or with a drain.
  ///
  /// **Threads**: any. Made with its first use.
  public var listener: EventListener {
    ownListener.value(or: { EventListener(on: central, direct: direct, of: consumer) })
  }

  // MARK: Looking

  /// How many events wait for this thread.
  ///
  /// **Threads**: any. Exact while nothing moves, a momentary figure otherwise.
  ///
  /// **Complexity**: O(callbacks of the thread that want the latest event only).
  public var eventCount: Int { consumer.mailbox.depths().reduce(0, +) }

  /// How many events wait in one lane.
  ///
  /// - Parameters:
  ///   - priority: The priority of the lane.
  ///   - method: Its discipline.
  /// - Returns: A momentary figure, as ``eventCount``.
  ///
  /// **Threads**, **Complexity**: as ``eventCount``.
  public func eventCount(priority: EventPriority, method: EventDispatchMethod) -> Int {
    consumer.mailbox.depths()[Int(Lane(method, priority).index)]
  }

  /// What this thread has done so far. **Threads**: any.
  public var statistics: EventThreadStatistics { consumer.statistics }
}

extension DispatchTime {
  /// As a time to wait until; nil for `.distantFuture`.
  var limit: UInt64? { self == .distantFuture ? nil : uptimeNanoseconds }
}

extension EventThread: ActiveByItself {}
