// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Synchronization

/// What a bridge does for one type of events, until it is removed or the bridge ends.
public final class RemoteRegistration: Sendable {
  private enum Kind: Sendable {
    /// The client's subscription, until it is removed, and what it dropped.
    case inward(Locked<Subscription?>, Overrun)
    case local([@Sendable () -> Void])
  }
  private let kind: Kind
  /// Whether what comes are replies to what is asked here, for which handlers may wait.
  let isForReplies: Bool
  private let hasEnded = Atomic<Bool>(false)
  private weak let bridge: NATSBridge?

  init(inward subscription: OpaquePointer, overrun: Overrun, isForReplies: Bool, of bridge: NATSBridge) {
    kind = .inward(Locked(Subscription(subscription, bridge.link)), overrun)
    self.isForReplies = isForReplies
    self.bridge = bridge
  }

  /// Whatever ends by closures.
  init(_ ends: [@Sendable () -> Void], of bridge: NATSBridge) {
    kind = .local(ends)
    isForReplies = false
    self.bridge = bridge
  }

  /// Whether nobody has begun to end it, by ``remove()`` or with its bridge. Once it is false, that may still be at
  /// work: until it returns, events may go out or arrive, and the type counts as published.
  public var isActive: Bool { !hasEnded.load(ordering: .relaxed) }

  /// Ends it. A call of a handler or a dispatch that is under way goes on. What still waits in the client to be
  /// dispatched is lost, unless it is durable and comes again, and counted as ``NATSBridge/Counts/overrun``. A
  /// request that waits there is told that nobody answers.
  ///
  /// - Returns: False if another call has ended it, or is about to.
  ///
  /// **Threads**: any, also inside a handler. That of a subscription blocks while the client has the connection to
  /// itself (``NATSBridge``).
  @discardableResult
  public func remove() -> Bool {
    guard !hasEnded.exchange(true, ordering: .relaxed) else { return false }
    switch kind {
    case .inward(let subscription, let overrun):
      // The last of those who use it gives it back: a registration that is kept does not keep its thread's stack.
      let last = subscription.withLock { subscription in
        defer { subscription = nil }
        return subscription
      }
      last?.use { pointer, _ in overrun.end(pointer) }
    case .local(let ends): for end in ends { end() }
    }
    // Last: now its count is final.
    bridge?.forget(self)
    return true
  }

  /// Ends a subscription, also a durable one, when what the server has sent for it was dispatched; no more comes.
  ///
  /// ```swift
  /// await jobs.drain()     // no more jobs come
  /// await world.drain()    // those that came are handled
  /// await bridge.drain()   // what the handlers have dispatched goes out
  /// ```
  ///
  /// - Parameter limit: How long it may take. Then it ends at once, as by ``remove()``.
  /// - Returns: Whether all was dispatched in time, and the server said that nothing more comes: false as well if that
  ///   is away until the limit. False if it has ended before, and at once if it is another one, which then stays as it
  ///   is: what publishes, mounts a node, forwards or answers requests, or joins coordinators ends by ``remove()``, or
  ///   is drained with the bridge (``NATSBridge/drain(within:)``).
  ///
  /// While the client has the connection to itself (``NATSBridge``), this returns false some half a second after the
  /// limit, and the registration ends when the client gives up.
  ///
  /// **Threads**: any, but not inside a handler that the subscription waits for.
  @discardableResult
  public func drain(within limit: Duration = .seconds(30)) async -> Bool {
    guard case .inward = kind else { return false }
    let deadline = ContinuousClock.Instant(after: limit)
    let isDrained = await resultOrNil(about: deadline) { [self] in
      await blocking { [self] in
        defer { remove() }
        return beginDrain(until: deadline) && awaitDrain(until: deadline)
      }
    }
    return isDrained ?? false
  }

  /// Ends a subscription once what the server has sent for it was dispatched, within some seconds, without waiting.
  func removeLater() {
    let deadline = ContinuousClock.Instant(after: .seconds(10))
    let isBegun = beginDrain(until: deadline)
    // Of its own: it blocks, and the threads of the global queue are others' as well.
    Thread.detachNewThread { [self] in
      if isBegun { awaitDrain(until: deadline) }
      remove()
    }
  }

  /// Asks the server for nothing more.
  fileprivate func beginDrain(until deadline: ContinuousClock.Instant) -> Bool {
    guard case .inward(let subscription, let overrun) = kind else { return false }
    return subscription.withLock { $0 }?.use { subscription, link in
      overrun.beginDrain(of: subscription, longest: natsConnection_GetMaxPayload(link.connection))
      // The client would end it at its own limit, and not say what it throws away: that is later than ours.
      let limit = deadline.milliseconds(atMost: .max - 10_000) + 10_000
      return natsSubscription_DrainTimeout(subscription, limit) == NATS_OK
    } ?? false
  }

  /// Returns when what the server has sent was dispatched, or the time is over.
  ///
  /// - Returns: Whether it was.
  @discardableResult
  fileprivate func awaitDrain(until deadline: ContinuousClock.Instant) -> Bool {
    guard case .inward(let subscription, let overrun) = kind else { return false }
    return subscription.withLock { $0 }?.use { subscription, _ in
      var status = NATS_OK
      // Meanwhile as well: no message comes while a handler does not return, and others are dropped for it.
      repeat {
        status = natsSubscription_WaitForDrainCompletion(subscription, deadline.milliseconds(atMost: 100))
        overrun.count(of: subscription)
      } while status == NATS_TIMEOUT && deadline > .now
      if status == NATS_TIMEOUT { overrun.end(subscription) }
      return status == NATS_OK && natsSubscription_DrainCompletionStatus(subscription) == NATS_OK
    } ?? false
  }

  /// How many messages the client has dropped, or had when it ended.
  var overrun: Int {
    guard case .inward(let subscription, let overrun) = kind else { return 0 }
    return subscription.withLock { $0 }?.use { pointer, _ in overrun.count(of: pointer) } ?? overrun.count
  }
}

extension [RemoteRegistration] {
  /// Drains all of them at once: each takes a way to the server and back, and its handlers' time.
  func drain(until deadline: ContinuousClock.Instant) {
    let begun = filter { $0.beginDrain(until: deadline) }
    for registration in begun { registration.awaitDrain(until: deadline) }
  }
}

/// A subscription of the client's. The link gets it back when the last reference goes, of the registration and of those
/// who use it at the moment.
private final class Subscription: @unchecked Sendable {
  // Neither changes; any thread may use what they point to.
  private let pointer: OpaquePointer
  private let link: Link

  init(_ pointer: OpaquePointer, _ link: Link) {
    (self.pointer, self.link) = (pointer, link)
    link.adopt(pointer)
  }

  deinit { link.retire(pointer) }

  func use<Result>(_ body: (OpaquePointer, Link) -> Result) -> Result {
    withExtendedLifetime(self) { body(pointer, link) }
  }
}
