// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Synchronization

/// The client's connection, and whether it is there.
///
/// One file, though long: whatever changes `phase` is in here.
///
/// Synchronization: `condition` guards `phase`, `lastFailure`, `isClosing`, `limit` and `early`. `connection` is
/// written by `connect`, before others have the link.
///
/// Ownership: the client has a reference of the link from `connect` until its callback for a closed connection, which
/// is the last one of a connection.
final class Link: @unchecked Sendable {
  private enum Phase { case new, connected, broken, closed }

  /// Weak, since a delivery has the link, and a listener of the central may keep that. Not changed after the
  /// initialiser; the runtime guards the reference.
  private weak var central: EventCentral?
  let name: String
  private let reconnect: NATSBridge.Reconnecting
  private(set) var connection: OpaquePointer?
  private let condition = NSCondition()
  private static let timers = DispatchQueue(label: "NATSBridge.timers")
  private var phase = Phase.new
  /// Waits end with it, at the next change. Entered once.
  private var change = DispatchGroup()
  /// Why the last attempt at a connection has failed, of the present outage or, if there is none, of the last one.
  private var lastFailure = NATS_OK
  /// Whether this side ends the connection.
  private var isClosing = false
  /// Until when to wait for a connection; nil is for ever.
  private var limit: ContinuousClock.Instant?
  /// What waits for the first connection, or for there to be none.
  private var early: [(isWanted: @Sendable () -> Bool, send: @Sendable () -> Void)] = []
  /// How many of them there may be until those are looked for that nobody wants any more.
  private var mostEarly = 64

  let sendsAtOnce: Bool
  private let isFlushing = Atomic<Bool>(false)
  private let flushes = DispatchQueue(label: "NATSBridge.flushes", qos: .userInitiated)
  private let replies = DispatchQueue(label: "NATSBridge.replies", qos: .userInitiated)
  /// Whether the client was ever given what nobody would send again. Relaxed: who reads it waits for the senders first.
  private let hasPlain = Atomic<Bool>(false)

  init(_ central: EventCentral, _ options: NATSBridge.Options) {
    sendsAtOnce = options.sendsAtOnce
    self.central = central
    name = options.name
    reconnect = options.reconnecting
    change.enter()
  }

  /// Those of durable events that are not decided. Each has the link.
  let deliveries = DispatchGroup()
  /// The client's, as `Link+Subscriptions.swift` uses them.
  let subscriptions = Locked(Subscriptions())

  deinit {
    change.leave()
    // What was being sent when it was closed. First: a message may not outlive the client's library.
    SpentMessages.shared.destroyAll()
    natsConnection_Destroy(connection)
    for subscription in subscriptions.withLock({ $0.retired }) { natsSubscription_Destroy(subscription) }
  }

  /// Blocks until there is a connection, or an error. Once.
  func connect(to server: NATSServer, _ options: NATSBridge.Options) throws(NATSBridgeError) {
    var clientOptions: OpaquePointer?
    try NATSBridgeError.check(natsOptions_Create(&clientOptions), "make options")
    defer { natsOptions_Destroy(clientOptions) }
    try server.apply(to: clientOptions, waits: options.waitsForServer)
    let context = Unmanaged.passRetained(self)
    let opaque = context.toOpaque()
    do throws(NATSBridgeError) {
      let settings: [(natsStatus, String)] = [
        (natsOptions_SetName(clientOptions, name.inJSON), "name the connection"),
        // What this bridge sends does not come back to it.
        (natsOptions_SetNoEcho(clientOptions, true), "leave out its own messages"),
        (natsOptions_SetMaxReconnect(clientOptions, -1), "connect again for ever"),
        (natsOptions_SetReconnectWait(clientOptions, 1), "connect again at once"),
        (natsOptions_SetCustomReconnectDelay(
          clientOptions,
          { connection, attempts, link in
            Link.of(link).reportFailure(to: connection, isFirst: attempts == 1)
            return Link.of(link).delay(after: Int(attempts))
          }, opaque), "back off"),
        (natsOptions_SetDisconnectedCB(
          clientOptions, { _, link in Link.of(link).change(to: .broken) }, opaque), "tell"),
        (natsOptions_SetReconnectedCB(
          clientOptions, { connection, link in Link.of(link).didConnect(connection) }, opaque), "tell"),
        (natsOptions_SetErrorHandler(
          clientOptions, { _, subscription, status, link in Link.of(link).didFail(status, subscription) }, opaque),
          "tell"),
        (natsOptions_SetClosedCB(
          clientOptions,
          { connection, link in
            Link.of(link).reportRefusal(by: connection)
            Link.of(link).change(to: .closed)
            // The reference of the client.
            Unmanaged<Link>.fromOpaque(link!).release()
          }, opaque), "tell"),
        (natsOptions_SetMaxPendingMsgs(clientOptions, Int32(min(options.inbox, longestInbox))), "bound the inbox"),
        (natsOptions_SetPingInterval(clientOptions, options.heartbeat.milliseconds), "set the heartbeat"),
        // It counts as gone at the fourth heartbeat without an answer, and the first may be due right after it went.
        (natsOptions_SetMaxPingsOut(clientOptions, 3), "set the heartbeat"),
        // The client takes both for the 32 bits of `poll`.
        (natsOptions_SetTimeout(clientOptions, min(options.connectTimeout.milliseconds, .longestPoll)),
          "set the time to connect"),
        (natsOptions_SetSendAsap(clientOptions, options.sendsAtOnce), "send at once"),
        // A server that takes nothing counts as gone, as one that says nothing.
        (natsOptions_SetWriteDeadline(clientOptions, min(3 * options.heartbeat.milliseconds, .longestPoll)),
          "set the time to write"),
        (natsOptions_SetRetryOnFailedConnect(
          clientOptions, options.waitsForServer, { connection, link in Link.of(link).didConnect(connection) }, opaque),
          "wait for the server"),
      ]
      for (status, what) in settings { try NATSBridgeError.check(status, what) }
      var status = natsConnection_Connect(&connection, clientOptions)
      // The client (3.4.1) is refused with the right key about once in 400 times, whatever the key: once more, with
      // another nonce to sign. Who has the wrong one is refused three times.
      for _ in 0..<2 where status == NATS_CONNECTION_AUTH_FAILED && server.signs {
        status = natsConnection_Connect(&connection, clientOptions)
      }
      if status != NATS_NOT_YET_CONNECTED {
        try NATSBridgeError.check(status, "connect to \(server.places)")
        condition.withLock {
          // It may have broken already, or have been closed.
          if phase == .new { phase = .connected }
        }
      }
    } catch {
      // Without a connection the client calls nothing.
      context.release()
      throw error
    }
    guard isConnected, let fault = Self.headerless(connection) else { return }
    close()
    throw NATSBridgeError(.other, fault)
  }

  /// What is wrong with a server that takes no headers; nil for others.
  private static func headerless(_ connection: OpaquePointer?) -> String? {
    guard natsConnection_HasHeaderSupport(connection) != NATS_OK else { return nil }
    let url = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { buffer in
      natsConnection_GetConnectedUrl(connection, buffer.baseAddress, buffer.count)
      return String(cString: buffer.baseAddress!)
    }
    return """
      What a bridge sends has headers, which servers take from version 2.2 on, and the one at \
      \(NATSServer.place(of: url)) takes none: take no_header_support out of its configuration, or a later version.
      """
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> Link {
    // The client passes on what it was given.
    Unmanaged<Link>.fromOpaque(context!).takeUnretainedValue()
  }

  // MARK: What the client reports, on threads of its own

  private func change(to next: Phase) {
    let (before, isClosing, early) = condition.withLock {
      defer {
        if phase != .closed { phase = next }
        self.early = []
      }
      tellOfChange()
      return (phase, self.isClosing, self.early)
    }
    // They wait for the network, and this thread is that of all connections.
    for one in early { replies.async(execute: one.send) }
    switch next {
    case .connected: report(before == .new ? .connected : .reconnected)
    case .broken: if !isClosing { report(.disconnected) }
    case .closed: report(.closed)
    case .new: break
    }
  }

  /// The connection is there, for the first time or again, maybe with another server. One that takes no headers gets
  /// nothing, and all waits for another one.
  private func didConnect(_ connection: OpaquePointer?) {
    change(to: .connected)
    if let fault = Self.headerless(connection) { report(.fault(fault)) }
  }

  private func delay(after attempts: Int) -> Int64 {
    let longest = reconnect.longest.milliseconds
    let doubled = reconnect.first.milliseconds.multipliedReportingOverflow(by: 1 << min(max(attempts - 1, 0), 20))
    let delay = doubled.overflow ? longest : min(longest, doubled.partialValue)
    // Bridges that lost one server do not come back in one moment.
    return max(1, delay - Int64.random(in: 0...max(0, delay / 4)))
  }

  private func didFail(_ status: natsStatus, _ subscription: OpaquePointer?) {
    guard status == NATS_SLOW_CONSUMER, let subscription else {
      // The client adds which subject it is of that the server does not permit.
      return report(.fault(NATSBridgeError.text(of: status) + NATSBridgeError.cause(of: status)))
    }
    if let change = slowConsumer(subscription) { report(change) }
  }

  /// Tells why the server has ended the connection for good, if it has: what its last words were. Of those about
  /// permissions the client has told.
  private func reportRefusal(by connection: OpaquePointer?) {
    var text: UnsafePointer<CChar>?
    // If this side has ended it, the last words may be those of an attempt that was not the last.
    let status = natsConnection_GetLastError(connection, &text)
    guard !hasEnded, status == NATS_ERR || isNew && status != NATS_OK else { return }
    let said = text.map { String(cString: $0) } ?? ""
    let words = said.isEmpty ? NATSBridgeError.text(of: status) : said
    report(.fault("The server has turned the client away: \(words)\(NATSBridgeError.advice(on: words))."))
  }

  /// Tells why there is no connection, or none again, although somebody takes it; once for each cause. On the client's
  /// thread that has failed.
  private func reportFailure(to connection: OpaquePointer?, isFirst: Bool) {
    var text: UnsafePointer<CChar>?
    let status = natsConnection_GetLastError(connection, &text)
    // The client counts from one in each outage.
    if isFirst { condition.withLock { lastFailure = NATS_OK } }
    // After a refusal it asks a second time, and then ends.
    guard ![NATS_OK, NATS_NO_SERVER, NATS_CONNECTION_AUTH_FAILED].contains(status) else { return }
    let isKnown = condition.withLock {
      defer { lastFailure = status }
      return lastFailure == status
    }
    guard !isKnown else { return }
    let cause = NATSBridgeError.text(of: status) + NATSBridgeError.cause(of: status)
    report(.fault("The client of NATS could not connect, and tries again: \(cause)."))
  }

  /// Whether there never was a connection.
  private var isNew: Bool { condition.withLock { phase == .new } }

  func report(_ change: NATSStatus.Change) {
    guard let central else { return }
    NATSStatus(bridge: name, change: change).queue(on: central)
  }

  // MARK: Sending

  /// Has the client write soon what it was given, without its millisecond. For what somebody waits for.
  ///
  /// Whoever asks for it does not wait: what asks the server for a sign of life writes all else first, and blocks.
  func flushSoon() {
    guard !sendsAtOnce, !isFlushing.exchange(true, ordering: .acquiringAndReleasing) else { return }
    flushes.async { [self] in
      // First: what comes from here on has a flush of its own. Pairs with the exchange above, before which the client was
      // given the message.
      _ = isFlushing.exchange(false, ordering: .acquiringAndReleasing)
      // While the server is away, the sign of life would wait with what is to be sent then, which the client's own
      // flusher does.
      guard isConnected else { return }
      natsConnection_FlushTimeout(connection, 100)
    }
  }

  /// Has a reply sent, after those before it, by a queue of the link's: who hands something to the client waits for the
  /// thread of the client that writes, as long as the network takes.
  ///
  /// - Parameter isAwaited: Whether somebody waits for it, more than for the client's millisecond.
  func enqueue(isAwaited: Bool = true, _ send: @escaping @Sendable (Link) -> Void) {
    replies.async { [self] in
      send(self)
      if isAwaited { flushSoon() }
    }
  }

  /// Calls a closure that hands something to the client: at once, or when there is a first connection, before which the
  /// client takes no headers, or there will be none.
  func send(while isWanted: @escaping @Sendable () -> Bool, _ body: @escaping @Sendable () -> Void) {
    let isEarly = condition.withLock {
      guard phase == .new else { return false }
      early.append((isWanted, body))
      if early.count > mostEarly {
        early.removeAll { !$0.isWanted() }
        mostEarly = max(64, 2 * early.count)
      }
      return true
    }
    if !isEarly { body() }
  }

  /// Returns when the client has the replies. Blocks.
  func finishReplies() { replies.sync {} }

  /// Returns when all durable events were handled, or given back; false if the time is over before, or this side has
  /// ended the connection. Blocks.
  func finishDeliveries(until deadline: ContinuousClock.Instant) -> Bool {
    while deliveries.wait(timeout: .now() + .milliseconds(Int(deadline.milliseconds(atMost: 100)))) == .timedOut {
      guard deadline > .now, !hasEnded else { return false }
    }
    return true
  }

  /// Says that the client has something that nobody sends again if the connection breaks.
  func notePlain() { hasPlain.store(true, ordering: .relaxed) }

  /// How often the client has connected again. Waits for the thread that writes.
  private var reconnects: UInt64 {
    var statistics: OpaquePointer?
    natsStatistics_Create(&statistics)
    defer { natsStatistics_Destroy(statistics) }
    natsConnection_GetStats(connection, statistics)
    var reconnects: UInt64 = 0
    natsStatistics_GetCounts(statistics, nil, nil, nil, nil, &reconnects)
    return reconnects
  }

  /// The number of the connection that is there, or of the next one.
  var generation: UInt64 {
    // In this order: if it comes back in between, it seems to have broken, and not the other way round.
    let reconnects = reconnects
    return reconnects + (natsConnection_Status(connection) == NATS_CONN_STATUS_CONNECTED ? 0 : 1)
  }

  /// Whether something may be lost that was sent over a connection since a certain one. The client's own count, since
  /// it tells of a break on a thread of its own, at some time.
  func mayHaveLost(since generation: UInt64) -> Bool {
    hasPlain.load(ordering: .relaxed) && reconnects > generation
  }

  /// Not once this side has ended it, of which the client tells a moment later.
  var isConnected: Bool { condition.withLock { phase == .connected && !isClosing } }

  /// Waits until there is a connection. False if the time is over, or there will be none.
  func awaitConnection() -> Bool {
    condition.withLock {
      while true {
        // First: a stream may refuse an event for ever, with the connection there.
        if let limit, limit <= .now { return false }
        guard phase == .new || phase == .broken else { return phase == .connected }
        condition.wait()
      }
    }
  }

  /// So many milliseconds, or those that are left until the limit.
  func timeLeft(atMost most: Int64) -> Int64 {
    guard let limit = condition.withLock({ limit }) else { return most }
    return limit.milliseconds(atMost: most)
  }

  /// Waits until the connection breaks, comes back or ends, or some time has passed. For those whom the server has
  /// refused what it may accept later: of that it tells nobody.
  func awaitChange(within limit: Duration) {
    _ = condition.withLock { change }.wait(timeout: .now() + .milliseconds(Int(limit.milliseconds)))
  }

  /// Wakes all who wait, to look again. With the mutex held.
  private func tellOfChange() {
    condition.broadcast()
    change.leave()
    change = DispatchGroup()
    change.enter()
  }

  /// Sends nothing more from some time on.
  func setLimit(_ limit: ContinuousClock.Instant) {
    condition.withLock {
      self.limit = limit
      tellOfChange()
    }
    // Waits of a condition with a limit go by the wall clock. A millisecond more, since these two clocks are apart, too.
    Self.timers.asyncAfter(deadline: .now() + .milliseconds(Int((limit - .now).milliseconds + 1))) { [condition] in
      condition.withLock { condition.broadcast() }
    }
  }

  /// Whether this side has begun to end the connection, or it has ended.
  var endsOrHasEnded: Bool { condition.withLock { limit != nil || phase == .closed } }

  /// Whether nothing is sent any more: the time of a drain is over, or the connection has ended.
  var isOver: Bool { condition.withLock { limit.map { $0 <= .now } == true || phase == .closed } }

  /// Whether this side has ended the connection.
  var hasEnded: Bool { condition.withLock { isClosing } }

  /// Ends the connection. The client (3.4.1) first writes what it was given, if the network takes it.
  func close() {
    condition.withLock {
      isClosing = true
      limit = .now
      tellOfChange()
    }
    finishReplies()
    natsConnection_Close(connection)
    SpentMessages.shared.destroyAll()
  }
}

extension Int64 {
  fileprivate static let longestPoll = Int64(Int32.max)
}
