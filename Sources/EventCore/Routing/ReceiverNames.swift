// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What the receivers in the routers of one central are called, by their subscriptions.
///
/// Synchronization: a mutex, under which nothing else is locked.
final class ReceiverNames: @unchecked Sendable {
  // The addresses are compared alone, and the dictionary has a mutex.
  private let names = Guarded<[UnsafeMutableRawPointer: String]>([:])

  /// Returns "" for a subscription that has ended, or that only C knows.
  subscript(subscription: Subscription) -> String { names.withLock { $0[subscription.pointer] ?? "" } }

  func set(_ subscription: Subscription, _ name: String) { names.withLock { $0[subscription.pointer] = name } }

  /// Before the subscription is freed, since another one may get its address.
  func remove(_ subscription: Subscription) { names.withLock { _ = $0.removeValue(forKey: subscription.pointer) } }
}
