// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// The subscriptions of everything that sends events to other machines. What arrives skips them, so that it goes
  /// out through no bridge.
  final class Outward: Sendable {
    private let subscriptions = Guarded<[Subscription]>([])

    /// After a dispatch has found its receivers: then those among them that `add` is registering are here.
    var all: [Subscription] { subscriptions.withLock { $0 } }
    /// Adds what `register` returns, under the lock.
    func add(_ register: () -> Subscription?) {
      subscriptions.withLock { subscriptions in
        if let subscription = register() { subscriptions.append(subscription) }
      }
    }
    func remove(_ subscription: Subscription) {
      subscriptions.withLock { $0.removeAll { $0.pointer == subscription.pointer } }
    }
  }
}
