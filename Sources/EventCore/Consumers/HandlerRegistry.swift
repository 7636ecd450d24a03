// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An event that handlers are called for when they register.
protocol GreetingEvent: StickyEvent {
  /// Registers a handler with a registry, which is called for the event first.
  func greet(
    _ handler: EventHandler, of registry: HandlerRegistry, _ consumer: Consumer, _ type: EventTypeActions
  ) -> Receiver?
}

/// Registers and removes the handlers of one consumer, by the types of their events. Any thread.
///
/// Synchronization: `state` has a mutex, which also guards some fields of the receivers; everything else is
/// constant. `Consumer` has the lock order.
final class HandlerRegistry: @unchecked Sendable {
  private struct State {
    var receivers: [UInt: Receiver] = [:]
    /// The receivers that want only the newest event, or that of each key; each has one handler.
    var conflated: [PoolRoute: Receiver] = [:]
    var isClosed = false
    /// Whether it was closed to handle first what waits.
    var isDraining = false
    /// Whether the consumer has taken all receivers, after its last event.
    var isOver = false
    /// What the instruments of the central want.
    var isObserved = false
    var isWatching = false
    var sampling: UInt32 = 0

    var all: [Receiver] { Array(receivers.values) + Array(conflated.values) }
  }
  private let state = Guarded(State())
  /// The central's router, and the one for events that are posted straight to the consumer.
  let routes: any RouteRegistry
  // Not weak: only the consumer has this registry, and uses it until the end of its `deinit`.
  private unowned(unsafe) let consumer: Consumer

  init(_ consumer: Consumer, _ routes: any RouteRegistry) {
    self.consumer = consumer
    self.routes = routes
  }

  /// False once it was closed.
  var isOpen: Bool { state.withLock { !$0.isClosed } }

  /// Whether what was taken is still handled: false once it was closed, unless to handle first what waits.
  var delivers: Bool { state.withLock { !$0.isClosed || $0.isDraining } }

  /// Whether it is open, and whether it was closed to handle first what waits; both at one moment.
  var phase: (isOpen: Bool, isDraining: Bool) { state.withLock { (!$0.isClosed, $0.isClosed && $0.isDraining) } }

  /// Whether the consumer has handled its last event: then its handlers end.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// Registers a handler for events of one type, which gets the newest one first if the central keeps it. Nil if the
  /// consumer is closed.
  func add(_ handler: EventHandler, _ type: EventTypeActions) -> Receiver? {
    guard consumer.hooks.member == nil, let sticky = consumer.basis.sticky.event(type.key) as? any GreetingEvent else {
      return subscribe(handler, type)
    }
    return sticky.greet(handler, of: self, consumer, type)
  }

  /// The same for later events alone. `raise` publishes the receiver with a generation of another one.
  func subscribe(
    _ handler: EventHandler, _ type: EventTypeActions, raise: ((_ publish: (RaisedSubscription?) -> Void) -> Void)? = nil
  ) -> Receiver? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      let known = handler.conflation.isConflated ? nil : state.receivers[type.key]
      let receiver = known ?? make(type, handler.conflation, &state)
      if let shared = consumer.hooks.shared {
        shared.add(handler, to: receiver)
      } else {
        receiver.add(handler, after: receiver.generation)
      }
      if let raise { raise { publish(receiver, raising: $0) } } else { publish(receiver) }
      return receiver
    }
  }

  /// Raises a receiver's generation for all events that find what `publish` subscribes. Returns the generation.
  ///
  /// Lock order: the newcomer's registry, which publishes, then this one, where nobody else registers.
  func raise(_ receiver: Receiver, with publish: (RaisedSubscription?) -> Void) -> UInt32 {
    state.withLock { state in
      if state.isClosed {
        publish(nil)
      } else {
        receiver.raise()
        publish(RaisedSubscription(subscription: receiver.subscription, generation: receiver.generation))
      }
      return receiver.generation
    }
  }

  /// Counts an ended handler off its receiver, and leaves it to the consumer to be freed. False if the consumer
  /// has ended, and has freed the handlers of all receivers that it had.
  func remove(_ handler: HandlerState, of receiver: Receiver) -> Bool {
    let (ended, isLeft) = state.withLock { state -> (Subscription?, Bool) in
      receiver.liveCount -= 1
      receiver.timedCount -= handler.isTimed ? 1 : 0
      var ended: Subscription?
      if state.isClosed {
        ended = endConflated(receiver, &state)
      } else if receiver.liveCount == 0 {
        retract(receiver)
        ended = endConflated(receiver, &state)
      } else if handler.isTimed, receiver.timedCount == 0 {
        // The last handler that needs the time is gone (D8).
        publish(receiver)
        consumer.hooks.shared?.leaveClock(receiver)
      }
      // With the lock held: a consumer that ends finds the handler either here or in a receiver of `takeAll`.
      return (ended, consumer.calls.requestDrop(of: handler, receiver))
    }
    if let ended { consumer.mailbox.removeLatestSubscription(ended) }
    return isLeft
  }

  /// Makes what waits in the shared mailbox for the handlers that this worker has by now.
  func admit() {
    state.withLock { state in
      for receiver in state.all { receiver.firstGeneration = receiver.generation }
    }
  }

  /// Unsubscribes all receivers, and refuses further handlers. `whenEmpty`: what waits is handled first.
  func close(whenEmpty: Bool = false) {
    state.withLock { state in
      state.isDraining = whenEmpty && (!state.isClosed || state.isDraining)
      guard !state.isClosed else { return }
      state.isClosed = true
      for receiver in state.all where receiver.isConflated || receiver.liveCount > 0 {
        retract(receiver)
      }
    }
  }

  /// Removes and returns all receivers, after the consumer has ended.
  func takeAll() -> [Receiver] {
    let (all, ended) = state.withLock { state in
      let all = state.all
      state.isOver = true
      for receiver in state.receivers.values { names.remove(receiver.subscription) }
      state.receivers.removeAll()
      return (all, all.compactMap { endConflated($0, &state) })
    }
    for subscription in ended { consumer.mailbox.removeLatestSubscription(subscription) }
    return all
  }

  /// This worker's receiver for an entry of its shared mailbox, if it has a handler for it.
  func receiver(for entry: SharedMailbox.Entry) -> Receiver? {
    state.withLock { state in
      entry.route.ordinal == 0 ? state.receivers[entry.route.key] : state.conflated[entry.route]
    }
  }

  /// How many events of a receiver were superseded while its handler was alive; 0 unless it is conflated.
  func supersededCount(_ receiver: Receiver) -> UInt64 {
    state.withLock { state in
      state.conflated[receiver.route] === receiver
        ? consumer.mailbox.supersededCount(of: receiver.subscription)
        : receiver.supersededCount
    }
  }

  /// Begins or stops to count events, as the instruments of the central say. Any thread.
  func followInstruments() {
    let instruments = consumer.basis.instruments
    state.withLock { state in
      let before = (state.isObserved, state.isWatching, state.sampling)
      let now = (instruments.isObserved, instruments.isWatching, instruments.sampling.load(ordering: .relaxed))
      guard !state.isClosed, before != now else { return }
      (state.isObserved, state.isWatching, state.sampling) = now
      // First the receivers, so that nothing is told without being counted; events that come meanwhile are timed later.
      if (before.0, before.1) != (now.0, now.1) {
        for receiver in state.all { observe(receiver, state) }
      }
      // Also if only the sampling is another: threads count what the routers need not tell of by the sampling before.
      routes.observe(by: state.isObserved ? instruments : nil)
      consumer.hooks.shared?.observe(by: state.isObserved ? instruments : nil)
    }
  }

  private var names: ReceiverNames { consumer.basis.names }

  // MARK: With the state locked

  private func observe(_ receiver: Receiver, _ state: State) {
    // The consumer's own jobs are no events of the user's.
    guard !receiver.isUnbounded else { return }
    if let shared = consumer.hooks.shared {
      shared.observe(state.isObserved, receiver)
    } else {
      receiver.observe(state.isObserved, after: receiver.generation)
    }
    if receiver.liveCount > 0 { publish(receiver) }
  }

  /// Where a receiver is subscribed. Jobs are for this consumer alone, and it may also hear the router of another one,
  /// whose jobs are not its own.
  private func routes(of receiver: Receiver) -> any RouteRegistry {
    receiver.isUnbounded ? consumer.direct : routes
  }

  /// Subscribes the receiver with its generation, and with whether it needs the time.
  private func publish(_ receiver: Receiver, raising other: RaisedSubscription? = nil) {
    routes(of: receiver).subscribe(
      receiver.key, receiver.subscription, ordinal: receiver.route.ordinal, generation: receiver.generation,
      timed: receiver.timedCount > 0, raising: other)
  }

  /// Unsubscribes the receiver.
  private func retract(_ receiver: Receiver) {
    routes(of: receiver).unsubscribe(receiver.key, receiver.subscription)
    consumer.hooks.shared?.leave(receiver)
  }

  private func make(
    _ type: EventTypeActions, _ conflation: Conflation, _ state: inout State
  ) -> Receiver {
    let type = consumer.basis.carrier.map { type.carrying($0, into: consumer.hooks.taken) } ?? type
    routes.expect(type.key, drop: type.drop)
    let receiver: Receiver
    if conflation.isConflated {
      let route = PoolRoute.freeForConflated(type.key, isPerKey: conflation.keys != nil) { state.conflated[$0] != nil }
      receiver = Receiver(type, consumer: consumer, conflation, ordinal: route.ordinal)
      receiver.subscription = consumer.mailbox.addLatestSubscription(receiver)
      state.conflated[route] = receiver
    } else {
      receiver = Receiver(type, consumer: consumer, conflation)
      receiver.subscription = consumer.mailbox.addSubscription(receiver)
      state.receivers[type.key] = receiver
    }
    names.set(receiver.subscription, consumer.probe.label)
    if state.isObserved || consumer.hooks.shared != nil { observe(receiver, state) }
    return receiver
  }

  /// Ends a receiver that is unsubscribed, if it is conflated and has not ended. Returns what the caller then removes
  /// from the mailbox after the unlock, since that ends keys, which runs code of the user's.
  private func endConflated(_ receiver: Receiver, _ state: inout State) -> Subscription? {
    guard state.conflated[receiver.route] === receiver else { return nil }
    state.conflated[receiver.route] = nil
    // Relaxed: whoever takes an event that was dispatched later sees it (`Consumer.deliverShared`).
    receiver.isOver.store(true, ordering: .relaxed)
    receiver.supersededCount = consumer.mailbox.supersededCount(of: receiver.subscription)
    names.remove(receiver.subscription)
    return receiver.subscription
  }
}
