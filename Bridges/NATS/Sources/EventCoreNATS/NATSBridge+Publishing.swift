// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@_spi(Bridge) import EventCore
import Foundation

extension NATSBridge {
  /// Sends every event of a type that is dispatched on this machine, under the type's subject.
  ///
  /// Receivers on this machine get it as usual. Events that came from another machine are not sent.
  ///
  /// - Parameters:
  ///   - type: The exact type of event (D11). Once for each type and bridge: events would go out twice.
  ///   - batch: How many events, at least 1, may go in one message while more than one waits; small events then take a
  ///     sixth of the time. Only bridges understand such a message, and their ``RemoteOrigin/sentAt`` is that of its
  ///     first event. Nothing is held back: a batch goes when it is full or when nothing waits; what it has when a
  ///     registration of the bridge is removed may go later, with its next event or its drain. It has at most 60,000
  ///     bytes, and less if the server takes less.
  /// - Returns: Ends it. It stays if it is released. On a bridge that was closed it has ended.
  ///
  /// **Order**: that of a receiver (D1 to D3): urgent events overtake those that wait in the outbox. Stacked
  /// events that wait there leave newest first; a receiver elsewhere, if it has them wait too, reverses them again.
  ///
  /// At most once: what the client has written when the connection breaks may be lost.
  @discardableResult
  public func publish<E: RemoteEvent>(_ type: E.Type, batch: Int = 1) -> RemoteRegistration {
    guard batch > 0 else {
      fatalError(
        """
        A batch is how many events may go in one message, at least 1, and this one is \(batch): pass 1 or more.
        """)
    }
    let outlet = Outlet(E.self, self)
    weak let thread = thread
    return publish { (event: E, priority, method, time) in
      guard batch > 1 else {
        outlet.send(event, under: E.subject, method, priority, time)
        return
      }
      outlet.sendBatched(event, method, priority, time, atMost: batch, before: { thread?.eventCount ?? 0 })
    }
  }

  /// Has the bridge's thread send the events of a type. Traps if it does so already.
  func publish<E: RemoteEvent>(
    by send: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> RemoteRegistration {
    let type = ObjectIdentifier(E.self)
    guard published.withLock({ $0.insert(type).inserted }) else {
      fatalError(
        """
        A bridge publishes a type once, and \(E.self) is published already: its events would go out twice. Remove that \
        registration first.
        """)
    }
    let registration = thread.addOutwardCallback(send)
    let published = published
    weak let batch = batch
    return keep(
      RemoteRegistration(
        [
          {
            registration.remove()
            batch?.expectGaps()
            published.withLock { _ = $0.remove(type) }
          }
        ], of: self))
  }
}

/// Sends the events of one type. On the bridge's thread.
final class Outlet<E: RemoteEvent>: Sendable {
  private let coding: RemoteCoding<E>
  private let header: HeaderWriter
  private let batch: OpenBatch
  private let link: Link
  private let counters: Counters
  private let central: EventCentral

  init(_ type: E.Type, _ bridge: NATSBridge) {
    checkSubject(E.subject, of: "the RemoteEvent \(E.self)")
    link = bridge.link
    counters = bridge.counters
    central = bridge.central
    batch = bridge.batch
    coding = E.coding
    header = HeaderWriter(E.self, coding, sender: bridge.sender)
  }

  /// - Returns: Whether the client has it.
  @discardableResult
  func send(
    _ event: E, under subject: String, replyTo reply: String? = nil, _ method: EventDispatchMethod,
    _ priority: EventPriority, _ time: DispatchTime, into stream: String? = nil,
    by publish: (OpaquePointer, Link) -> natsStatus = Link.publish
  ) -> Bool {
    batch.send()
    guard let body = try? coding.encode(event) else {
      counters.unencodable.increment()
      return false
    }
    return send(body, under: subject, replyTo: reply, line(method, priority, time), into: stream, by: publish)
  }

  /// - Parameter waiting: Returns how many events wait in the outbox. If those that wait are of a type that is not sent
  ///   any more, what is in the batch goes with the bridge's next event, or its drain.
  func sendBatched(
    _ event: E, _ method: EventDispatchMethod, _ priority: EventPriority, _ time: DispatchTime, atMost limit: Int,
    before waiting: () -> Int
  ) {
    defer { batch.sendIfLast(before: waiting) }
    guard let body = try? coding.encode(event) else { return counters.unencodable.increment() }
    guard body.count + 4 <= EventBatch.longest else {
      batch.send()
      send(body, under: E.subject, line(method, priority, time), by: Link.publish)
      return
    }
    let kind = OpenBatch.Kind(
      subject: E.subject, type: ObjectIdentifier(E.self), method: method, priority: priority,
      fields: central.carriedFields)
    batch.add(body, kind, atMost: limit) { line(method, priority, time) }
  }

  @discardableResult
  private func send(
    _ body: Data, under subject: String, replyTo reply: String? = nil, _ line: String, into stream: String? = nil,
    by publish: (OpaquePointer, Link) -> natsStatus
  ) -> Bool {
    let fields = central.carriedFields
    guard let message = body.withUnsafeBytes({ makeMessage(subject, line, $0, fields, reply: reply) }) else {
      counters.tooLarge.increment()
      return false
    }
    defer { SpentMessages.shared.add(message) }
    return transmit(message, 1, link, counters, into: stream, by: publish) { counters.tooLarge.increment() }
  }

  private func line(_ method: EventDispatchMethod, _ priority: EventPriority, _ time: DispatchTime) -> String {
    let age = central.now.uptimeNanoseconds &- time.uptimeNanoseconds
    return header.line(method, priority, time: wallClock() - Int64(clamping: age))
  }
}

/// The most bytes of a message's subjects together. Servers take a line of 4,096 (`max_control_line`), which has some
/// numbers as well, and turn away for good whoever sends a longer one.
let longestSubjects = 4000

/// The most bytes of a body: more than any server takes, and the client counts body and header in 31 bits.
private let longestBody = 1 << 30

/// A message of the client's, which copies everything. Nil if it is too long for any server.
///
/// - Parameter fields: Other headers: what the central carries.
func makeMessage(
  _ subject: String, _ header: String, _ body: UnsafeRawBufferPointer, _ fields: [String: String],
  reply: String? = nil
) -> OpaquePointer? {
  let subjects = subject.utf8.count + (reply?.utf8.count ?? 0)
  guard body.count <= longestBody, subjects <= longestSubjects else { return nil }
  var message: OpaquePointer?
  func make(_ reply: UnsafePointer<CChar>?) -> natsStatus {
    subject.withCString {
      natsMsg_Create(&message, $0, reply, body.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(body.count))
    }
  }
  let status = reply?.withCString(make) ?? make(nil)
  guard status == NATS_OK,
    header.withCString({ natsMsgHeader_Set(message, MessageHeader.key.bytes, $0) }) == NATS_OK
  else {
    fatalError(
      """
      The client makes a message for each event, and could not: \(NATSBridgeError.text(of: status)). Memory is out: bound \
      the outbox to fewer events.
      """)
  }
  // The client (3.4.1) reads the line behind an empty value as that value, or no header at all. A string of C ends at
  // the first zero.
  for (name, text) in fields where text.utf8.prefix(while: { $0 != 0 }).contains(where: { $0 > 32 }) {
    natsMsgHeader_Set(message, name, text)
  }
  return message
}

/// The headers of a message.
func fields(of message: OpaquePointer) -> [String: String] {
  var (names, count) = (UnsafeMutablePointer<UnsafePointer<CChar>?>?.none, Int32(0))
  guard natsMsgHeader_Keys(message, &names, &count) == NATS_OK else { return [:] }
  // The array is the caller's, and the names are the message's.
  defer { free(names) }
  var fields: [String: String] = [:]
  for name in UnsafeBufferPointer(start: names, count: Int(count)) {
    var text: UnsafePointer<CChar>?
    guard let name, natsMsgHeader_Get(message, name, &text) == NATS_OK, let text else { continue }
    fields[String(cString: name)] = String(cString: text)
  }
  return fields
}

/// Nanoseconds since 1970.
func wallClock() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Traps unless events can be sent under a subject.
///
/// - Parameter isKept: Whether streams are to keep them, of whom the client (3.4.1) tells the server in texts of JSON.
func checkSubject(_ subject: String, of what: @autoclosure () -> String, isKept: Bool = false) {
  let others = (isKept ? "*>\0\"\\" : "*>\0").unicodeScalars
  // Not characters: the server sees a dot also before a mark that would combine with it.
  let words = subject.unicodeScalars.split(separator: ".", omittingEmptySubsequences: false)
  let isValid = words.allSatisfy { word in
    !word.isEmpty && word.allSatisfy { !$0.properties.isWhitespace && !others.contains($0) }
  }
  guard !isValid else { return }
  fatalError(
    """
    A subject is words that are separated by dots, without wildcards\(isKept ? ", quotes, backslashes" : "") and \
    spaces, and that of \(what()) is "\(subject)": give it one such as "sensors.temperature".
    """)
}
