// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Synchronization

/// What a bridge does for one type of events, until it is removed or the bridge ends.
public final class RemoteRegistration: Sendable {
  private enum Kind: @unchecked Sendable {
    /// The client's subscription, of which this is the only reference, what it dropped, and where it goes in the end.
    case inward(OpaquePointer, Overrun, Link)
    case local([@Sendable () -> Void])
  }
  private let kind: Kind
  private let hasEnded = Atomic<Bool>(false)
  private let bridge: WeakBridge

  init(inward subscription: OpaquePointer, overrun: Overrun, of bridge: NATSBridge) {
    kind = .inward(subscription, overrun, bridge.link)
    bridge.link.adopt(subscription)
    self.bridge = WeakBridge(bridge)
  }

  /// Whatever ends by closures.
  init(_ ends: [@Sendable () -> Void], of bridge: NATSBridge) {
    kind = .local(ends)
    self.bridge = WeakBridge(bridge)
  }

  deinit {
    if case .inward(let subscription, _, let link) = kind { link.retire(subscription) }
  }

  /// Whether nobody has begun to end it, by ``remove()`` or with its bridge. Once it is false, that may still be at
  /// work: until it returns, events may go out or arrive, and the type counts as published.
  public var isActive: Bool { !hasEnded.load(ordering: .relaxed) }

  /// Ends it. A call of a handler or a dispatch that is under way goes on.
  ///
  /// - Returns: False if another call has ended it, or is about to.
  ///
  /// **Threads**: any, also inside a handler.
  @discardableResult
  public func remove() -> Bool {
    guard !hasEnded.exchange(true, ordering: .relaxed) else { return false }
    // First: of a subscription that has ended the client tells nothing.
    bridge.object?.forget(self)
    switch kind {
    case .inward(let subscription, _, _): natsSubscription_Unsubscribe(subscription)
    case .local(let ends): for end in ends { end() }
    }
    return true
  }

  /// Asks the server for nothing more, and returns when what it has sent was dispatched, or the time is over.
  func drain(until deadline: Date) {
    guard case .inward(let subscription, let overrun, let link) = kind, isActive else { return }
    overrun.beginDrain(of: subscription, longest: natsConnection_GetMaxPayload(link.connection))
    guard natsSubscription_DrainTimeout(subscription, deadline.milliseconds()) == NATS_OK else { return }
    // Meanwhile as well: no message comes while a handler does not return, and others are dropped for it.
    while natsSubscription_WaitForDrainCompletion(subscription, deadline.milliseconds(atMost: 100)) == NATS_TIMEOUT,
      deadline > Date()
    { overrun.count(of: subscription) }
  }

  /// How many messages the client has dropped.
  var overrun: Int {
    guard case .inward(let subscription, let overrun, _) = kind else { return 0 }
    return overrun.count(of: subscription)
  }
}

/// The bridge retains its registrations.
private struct WeakBridge: @unchecked Sendable {
  // Not changed after the initialiser; the runtime guards the reference.
  private(set) weak var object: NATSBridge?
  init(_ object: NATSBridge) { self.object = object }
}
