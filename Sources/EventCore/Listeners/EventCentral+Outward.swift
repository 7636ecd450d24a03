// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// The subscriptions of everything that sends events to other machines. What arrives skips them, so that it goes
  /// out through no bridge.
  final class Outward: Sendable {
    /// By the keys of their types.
    private let subscriptions = Guarded<[UInt: [Subscription]]>([:])

    /// Those for a type. After a dispatch has found its receivers: then those among them that `add` is registering are
    /// here.
    func all(of key: UInt) -> [Subscription] { subscriptions.withLock { $0[key] ?? [] } }
    /// Adds what `register` returns, under the lock.
    func add(_ key: UInt, _ register: () -> Subscription?) {
      subscriptions.withLock { subscriptions in
        if let subscription = register() { subscriptions[key, default: []].append(subscription) }
      }
    }
    func remove(_ subscription: Subscription, _ key: UInt) {
      subscriptions.withLock { subscriptions in
        let rest = subscriptions[key]?.filter { $0.pointer != subscription.pointer } ?? []
        subscriptions[key] = rest.isEmpty ? nil : rest
      }
    }
  }
}
