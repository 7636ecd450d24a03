// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import Foundation

/// The client's subscriptions of a connection. Each has a thread, whose stack stays until it is destroyed.
struct Subscriptions {
  /// Those that are not destroyed.
  var known: Set<OpaquePointer> = []
  /// Those that have ended.
  var retired: [OpaquePointer] = []
  var isDestroying = false
}

extension Link {
  /// So many are destroyed together, since each time takes a thread and an answer of the server's.
  static let retiredTogether = 32

  /// How many have ended and are not destroyed.
  var retiredCount: Int { subscriptions.withLock { $0.retired.count } }

  /// Takes over a subscription of the client's, until it is retired.
  func adopt(_ subscription: OpaquePointer) { subscriptions.withLock { _ = $0.known.insert(subscription) } }

  /// Takes a subscription that has ended, and that nobody here uses any more.
  func retire(_ subscription: OpaquePointer) {
    subscriptions.withLock { $0.retired.append(subscription) }
    destroyRetired()
  }

  /// Destroys those that have ended, if they are many. The others wait for the end of the connection.
  ///
  /// The client's reading thread may hold one without a reference of its own while it takes a message (its issue 637,
  /// in versions before 3.6). It is through with that message when it takes the answer to a question that was asked
  /// after the end, for which this waits, on a thread of its own.
  private func destroyRetired() {
    guard isConnected else { return }
    let mayBegin = subscriptions.withLock { subscriptions in
      guard !subscriptions.isDestroying, subscriptions.retired.count >= Self.retiredTogether else { return false }
      subscriptions.isDestroying = true
      return true
    }
    guard mayBegin else { return }
    Thread.detachNewThread { [self] in
      let ended = subscriptions.withLock { $0.retired }
      let isOver = flush(within: 10_000) == NATS_OK
      subscriptions.withLock { subscriptions in
        subscriptions.isDestroying = false
        guard isOver else { return }
        subscriptions.retired.removeFirst(ended.count)
        // Before they are destroyed: another one may be made at the same place.
        subscriptions.known.subtract(ended)
      }
      // Without an answer they wait for the next one that ends.
      guard isOver else { return }
      for subscription in ended { natsSubscription_Destroy(subscription) }
      destroyRetired()
    }
  }

  /// What to tell of a subscription of which the client has dropped messages, as it says on a thread of its own at some
  /// time later, without a reference of the subscription. With the lock held that is not destroyed meanwhile. Of one
  /// that was there is nothing to tell, nor of another one that has its place by now and has dropped nothing.
  func slowConsumer(_ subscription: OpaquePointer) -> NATSStatus.Change? {
    // The client calls nobody under its own lock, which this takes inside.
    subscriptions.withLock { subscriptions in
      var dropped: Int64 = 0
      guard subscriptions.known.contains(subscription),
        natsSubscription_GetDropped(subscription, &dropped) == NATS_OK, dropped > 0,
        let subject = natsSubscription_GetSubject(subscription)
      else { return nil }
      return .slowConsumer(subject: String(cString: subject), dropped: Int(dropped))
    }
  }
}
