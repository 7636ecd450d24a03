// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What happened to the connection of a bridge: an event like any other, on the bridge's central.
///
/// ```swift
/// NATSStatus.addListener(self, on: world) { [weak self] status in self?.show(status.change) }
/// ```
///
/// **Order**: as it happened, for each bridge.
public struct NATSStatus: Eventable {
  public enum Change: Sendable, Equatable {
    /// The connection is there, for the first time. Dispatched for a bridge that was made before its server
    /// (``NATSBridge/Options/waitsForServer``).
    case connected
    /// It broke. What is published waits in the outbox; the client tries to connect again.
    case disconnected
    /// It is there again, and all subscriptions with it.
    case reconnected
    /// It has ended, by ``NATSBridge/close()`` or ``NATSBridge/drain(within:)``, or because the server turned the
    /// client away for good.
    case closed
    /// Messages of a subject came faster than they were dispatched, and the client dropped some: so many so far.
    case slowConsumer(subject: String, dropped: Int)
    /// Anything else that the client reports: what the server does not permit, with its subject; why there is no
    /// connection, or none again, although something is at the address, once for each cause in a row; before
    /// ``closed``, why the server turned the client away. After a break it does not say what keeps the bridge from the
    /// server that it had, if the client knows of several servers, or with ``NATSBridge/Options/waitsForServer``.
    case fault(String)
  }

  /// The ``NATSBridge/Options/name`` of the bridge.
  public let bridge: String
  public let change: Change
}
