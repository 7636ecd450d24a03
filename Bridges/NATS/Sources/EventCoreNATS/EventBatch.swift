// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Synchronization

/// Several events in one message: a header, `EventCore-Batch`, with their number, and a body in which each is preceded
/// by its length in four bytes, the lowest first.
///
/// Why: what the client and the server do for a message takes longer than what is done for a small event.
enum EventBatch {
  static let key: StaticString = "EventCore-Batch"
  /// The most bytes of a batch that is sent, unless the server takes less; a larger event goes alone.
  static let longest = 60_000

  static func append(_ event: Data, to body: inout [UInt8]) {
    withUnsafeBytes(of: UInt32(event.count).littleEndian) { body.append(contentsOf: $0) }
    event.withUnsafeBytes { body.append(contentsOf: $0) }
  }

  /// Takes the first event out of a body; nil if that is cut.
  static func takeFirst(_ body: inout UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard body.count >= 4 else { return nil }
    let length = Int(UInt32(littleEndian: body.loadUnaligned(as: UInt32.self)))
    guard length <= body.count - 4 else { return nil }
    defer { body = UnsafeRawBufferPointer(rebasing: body[(4 + length)...]) }
    return UnsafeRawBufferPointer(rebasing: body[4..<(4 + length)])
  }
}

/// The batch that a bridge is filling. On the bridge's thread; after the thread's end on the one that drains.
final class OpenBatch: @unchecked Sendable {
  // One thread at a time uses it: the bridge's, and the one that drains only after that has ended, which orders the two.

  /// What the events of a batch have in common.
  struct Kind: Equatable {
    var subject: String
    var type: ObjectIdentifier
    var method: EventDispatchMethod
    var priority: EventPriority
    /// What the central carries.
    var fields: [String: String]
  }

  private let link: Link
  private let counters: Counters
  // Used as the class says. One value, since the runtime checks each access.
  private var open = Contents()
  private struct Contents {
    var kind: Kind?
    var line = ""
    var body: [UInt8] = []
    /// How many events wait for certain: so many did when it was asked for, less those that came since.
    var waiting = 0
    /// The most bytes that it may have, less than at first if a server took less.
    var longest = EventBatch.longest
  }

  /// How many events it has. Written as the class says; relaxed: who reads it counts.
  private let events = Atomic<Int>(0)
  var count: Int { events.load(ordering: .relaxed) }
  /// Whether some that wait may not come. Relaxed: if the thread sees it late, it does so with the next event.
  private let mayHaveGaps = Atomic<Bool>(false)

  init(_ link: Link, _ counters: Counters) {
    (self.link, self.counters) = (link, counters)
  }

  /// Adds an event, and sends the batch if it is full then. The header's line is that of the first event.
  func add(_ event: Data, _ kind: Kind, atMost limit: Int, _ line: () -> String) {
    add(event, kind, atMost: limit, line, to: &open)
  }

  private func add(
    _ event: Data, _ kind: Kind, atMost limit: Int, _ line: () -> String, to open: inout Contents
  ) {
    if kind != open.kind || open.body.count + event.count + 4 > open.longest { send(&open) }
    if count == 0 { (open.kind, open.line) = (kind, line()) }
    EventBatch.append(event, to: &open.body)
    events.store(count + 1, ordering: .relaxed)
    if count >= limit { send(&open) }
  }

  /// Has the batch ask anew with each event, until none waits: some that do are not sent any more. Any thread.
  func expectGaps() { mayHaveGaps.store(true, ordering: .relaxed) }

  /// Sends what is there unless other events wait, behind the one that came last. How many do is asked for when those
  /// that did have come: it takes as long as a third of all else.
  func sendIfLast(before waiting: () -> Int) {
    // First: a type that is removed from here on has events behind this one.
    let hasGaps = mayHaveGaps.load(ordering: .relaxed) && mayHaveGaps.exchange(false, ordering: .relaxed)
    open.waiting = hasGaps ? 0 : max(0, open.waiting - 1)
    guard open.waiting == 0 else { return }
    open.waiting = waiting()
    if open.waiting == 0 { send(&open) } else if hasGaps { expectGaps() }
  }

  /// Sends what is there, before an event that goes alone, or in the end.
  func send() {
    open.waiting = 0
    send(&open)
  }

  private func send(_ open: inout Contents) {
    guard let kind = open.kind else { return }
    let message = open.body.withUnsafeBytes { makeMessage(kind.subject, open.line, $0, kind.fields) }
    let count = count
    open.kind = nil
    defer { open.body.removeAll(keepingCapacity: true) }
    events.store(0, ordering: .relaxed)
    // A batch is shorter than the longest message, but its subject may be longer than any server takes.
    guard let message else { return counters.tooLarge.add(count) }
    defer { SpentMessages.shared.add(message) }
    natsMsgHeader_Set(message, EventBatch.key.bytes, String(count))
    transmit(message, count, link, counters, by: Link.publish) {
      // The server takes less than a batch: each event goes alone, and later batches are half as long.
      open.longest = min(open.longest, open.body.count / 2)
      open.body.withUnsafeBytes { sendEach($0, kind, open.line) }
    }
  }

  private func sendEach(_ body: UnsafeRawBufferPointer, _ kind: Kind, _ line: String) {
    var rest = body
    while let event = EventBatch.takeFirst(&rest) {
      // It was made with more events.
      guard let message = makeMessage(kind.subject, line, event, kind.fields) else { continue }
      defer { SpentMessages.shared.add(message) }
      transmit(message, 1, link, counters, by: Link.publish) { counters.tooLarge.increment() }
    }
  }
}

extension Link {
  /// Hands a message to the client, which copies it.
  static let publish: @Sendable (OpaquePointer, Link) -> natsStatus = { message, link in
    link.notePlain()
    return natsConnection_PublishMsg(link.connection, message)
  }

  /// Waits until the server has read all that this connection has sent, and the client's reading thread its answer.
  /// On a thread that was made for it, as by `blocking`, once: the client keeps the last error of each thread.
  func flush(within milliseconds: Int64) -> natsStatus {
    var status = natsConnection_FlushTimeout(connection, milliseconds)
    guard status == NATS_OK else { return status }
    // The client (3.4.1) says so as well if it could not write its question, and then has left the thread an error.
    nats_GetLastError(&status)
    guard status == NATS_OK else { return status }
    // What its own thread could not write is lost, too.
    var text: UnsafePointer<CChar>?
    status = natsConnection_GetLastError(connection, &text)
    // These are of what comes, or of one subject, and say nothing of what was written.
    return [NATS_SLOW_CONSUMER, NATS_MISMATCH, NATS_NOT_PERMITTED].contains(status) ? NATS_OK : status
  }
}

/// Sends a message of some events when there is a connection, and counts them. On the bridge's thread.
///
/// - Parameters:
///   - stream: The one that is to store it, if any.
///   - tooLarge: Is called if the server does not take so long a message, which is not counted here.
/// - Returns: Whether the client has it.
@discardableResult
func transmit(
  _ message: OpaquePointer, _ events: Int, _ link: Link, _ counters: Counters, into stream: String? = nil,
  by publish: (OpaquePointer, Link) -> natsStatus, or tooLarge: () -> Void
) -> Bool {
  // A stream that is there says at once what it does not store. The client also fails while the connection breaks, of
  // which the link hears a moment later: after a second of attempts it is something else.
  let attemptsUntold = stream == nil ? 100 : 0
  var (attempts, isTold) = (0, false)
  while link.awaitConnection() {
    let status = publish(message, link)
    switch status {
    case NATS_OK: counters.sent.add(events)
    case NATS_MAX_PAYLOAD: tooLarge()
    case NATS_CONNECTION_CLOSED, NATS_DRAINING: counters.unsent.add(events)
    default:
      // The connection has broken, which the link is about to know; or the stream is not there again yet, or is full.
      attempts += 1
      // Once for each message, which is tried again and again. That the connection is gone is told by itself, and so is
      // a server that takes no headers.
      if !isTold, attempts > attemptsUntold, status != NATS_NO_SERVER_SUPPORT, link.isConnected {
        isTold = true
        let who = stream.map { "The stream \($0) has not stored" } ?? "The client of NATS has not taken"
        link.report(
          .fault(
            """
            \(who) an event, which waits, and all others of the bridge behind it: \
            \(NATSBridgeError.text(of: status))\(NATSBridgeError.cause(of: status)).
            """))
      }
      link.awaitChange(within: .milliseconds(10))
      continue
    }
    return status == NATS_OK
  }
  counters.unsent.add(events)
  return false
}
