// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// How handlers come and go. From any thread.

extension Consumer {
  /// Registers a handler for events of one type. False if the consumer is closed.
  func add(_ handler: EventHandler, _ type: EventTypeActions) -> Receiver? {
    registration.withLock { _ in
      guard !isClosed else { return nil }
      let receiver =
        handler.isLatestOnly ? makeLatest(type) : receivers[type.key] ?? makeReceiver(type)
      if let sharedMailbox {
        sharedMailbox.add(handler, to: receiver)
      } else {
        receiver.add(handler, after: receiver.generation)
      }
      publish(receiver)
      return receiver
    }
  }

  /// Tells the routers the receiver's generation, and whether the clock is needed. Registration
  /// locked.
  private func publish(_ receiver: Receiver) {
    for router in routers {
      router.subscribe(
        receiver.key, receiver.subscription, generation: receiver.generation,
        timed: receiver.timedCount > 0)
    }
  }

  /// Takes the receiver off the routers. Registration locked.
  func retract(_ receiver: Receiver) {
    for router in routers {
      router.unsubscribe(receiver.key, receiver.subscription)
    }
    sharedMailbox?.leave(receiver)
  }

  /// What this worker does with the events of an entry of its shared mailbox, if it has a handler
  /// for it.
  func receiver(for entry: SharedMailbox.Entry) -> Receiver? {
    registration.withLock { _ in
      guard let rank = entry.rank else { return receivers[entry.key] }
      return latests.values.first { $0.key == entry.key && $0.rank == rank }
    }
  }

  /// Before the first subscription to a type. Registration locked.
  private func expect(_ type: EventTypeActions) {
    for router in routers {
      router.expect(type.key, drop: type.drop)
    }
  }

  private func makeReceiver(_ type: EventTypeActions) -> Receiver {
    expect(type)
    let receiver = Receiver(type, consumer: self, isLatestOnly: false)
    receiver.subscription = mailbox.addSubscription(receiver)
    receivers[type.key] = receiver
    return receiver
  }

  private func makeLatest(_ type: EventTypeActions) -> Receiver {
    expect(type)
    let receiver = Receiver(
      type, consumer: self, isLatestOnly: true,
      rank: sharedMailbox == nil ? nil : freeRank(type.key))
    receiver.subscription = mailbox.addLatestSubscription(receiver)
    latests[ObjectIdentifier(receiver)] = receiver
    return receiver
  }

  /// The first rank that no latest-only receiver of a type has. Registration locked.
  private func freeRank(_ key: UInt) -> Int {
    let used = Set(latests.values.lazy.filter { $0.key == key }.map(\.rank))
    return (0...).first { !used.contains($0) }!
  }

  /// Lets go of a latest-only receiver, which no router has any more. Registration locked. True for
  /// the first call.
  @discardableResult
  func endLatest(_ receiver: Receiver) -> Bool {
    guard latests.removeValue(forKey: ObjectIdentifier(receiver)) != nil else { return false }
    // Relaxed: who takes an event that was dispatched after this finds it.
    receiver.isOver.store(true, ordering: .relaxed)
    receiver.supersededCount = mailbox.supersededCount(of: receiver.subscription)
    mailbox.removeLatestSubscription(receiver.subscription)
    return true
  }

  /// How many events of a latest-only receiver were superseded while its handler was alive. 0 for
  /// others.
  func supersededCount(_ receiver: Receiver) -> UInt64 {
    registration.withLock { _ in
      latests[ObjectIdentifier(receiver)] == nil
        ? receiver.supersededCount : mailbox.supersededCount(of: receiver.subscription)
    }
  }

  /// Ends a handler. True if it was alive.
  func remove(_ handler: HandlerState, of receiver: Receiver) -> Bool {
    guard receiver.end(handler) else { return false }
    let hasEndedLatest = registration.withLock { _ in
      receiver.liveCount -= 1
      receiver.timedCount -= handler.isTimed ? 1 : 0
      if isClosed { return endLatest(receiver) }
      if receiver.liveCount == 0 {
        retract(receiver)
        return endLatest(receiver)
      }
      if handler.isTimed, receiver.timedCount == 0 {
        // Nobody is left who asks for the clock (D8).
        publish(receiver)
        sharedMailbox?.leaveClock(receiver)
      }
      return false
    }
    // The consumer frees the closure between two events.
    if requests.withLock({ requests in
      if !requests.hasEnded { requests.dropped.append((receiver, handler)) }
      return !requests.hasEnded
    }) {
      requestControl()
    } else if hasEndedLatest {
      // The consumer has ended without having found it among its own: nobody else knows it.
      receiver.drop(handler)
    }
    return true
  }
}
