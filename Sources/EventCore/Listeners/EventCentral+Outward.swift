// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// The subscriptions of everything that sends events to other machines. What arrives skips them, so that it goes
  /// out through no bridge.
  final class Outward: Sendable {
    private let subscriptions = Guarded<[Subscription]>([])

    var all: [Subscription] { subscriptions.withLock { $0 } }
    func add(_ subscription: Subscription) { subscriptions.withLock { $0.append(subscription) } }
    func remove(_ subscription: Subscription) {
      subscriptions.withLock { $0.removeAll { $0.pointer == subscription.pointer } }
    }
  }
}
