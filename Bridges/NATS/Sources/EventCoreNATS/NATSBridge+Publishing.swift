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
  /// - Parameter type: The exact type of event (D11). Once for each type and bridge: events would go out twice.
  /// - Returns: Ends it. It stays if it is released.
  ///
  /// **Order**: that of a receiver (D1 to D3): urgent events overtake those that wait in the outbox.
  ///
  /// At most once: what the client has written when the connection breaks may be lost.
  @discardableResult
  public func publish<E: RemoteEvent>(_ type: E.Type) -> RemoteRegistration {
    let outlet = Outlet(E.self, self)
    return keep(
      RemoteRegistration(
        outward: [
          thread.addOutwardCallback { (event: E, priority, method, time) in
            outlet.send(event, under: E.subject, method, priority, time)
          }
        ], of: self))
  }
}

/// Sends the events of one type. On the bridge's thread.
struct Outlet<E: RemoteEvent>: Sendable {
  private let coding = E.coding
  private let header: HeaderWriter
  private let link: Link
  private let counters: Counters

  init(_ type: E.Type, _ bridge: NATSBridge) {
    checkSubject(E.subject, of: E.self)
    link = bridge.link
    counters = bridge.counters
    header = HeaderWriter(E.self, sender: bridge.sender)
  }

  func send(
    _ event: E, under subject: String, _ method: EventDispatchMethod, _ priority: EventPriority,
    _ time: DispatchTime, by publish: (OpaquePointer, Link) -> natsStatus = { natsConnection_PublishMsg($1.connection, $0) }
  ) {
    guard let body = try? coding.encode(event) else { return counters.unencodable.increment() }
    let age = link.central.now.uptimeNanoseconds &- time.uptimeNanoseconds
    let line = header.line(method, priority, time: wallClock() - Int64(clamping: age))
    guard let message = makeMessage(subject, line, body) else { return counters.tooLarge.increment() }
    defer { natsMsg_Destroy(message) }
    while link.awaitConnection() {
      switch publish(message, link) {
      case NATS_OK: return counters.sent.increment()
      case NATS_MAX_PAYLOAD: return counters.tooLarge.increment()
      case NATS_CONNECTION_CLOSED, NATS_DRAINING: return counters.unsent.increment()
      // The connection has broken, which `awaitConnection` is about to know.
      default: Thread.sleep(forTimeInterval: 0.001)
      }
    }
    counters.unsent.increment()
  }
}

/// A message of the client's, which copies everything. Nil if it is too long for any server.
func makeMessage(_ subject: String, _ header: String, _ body: Data, reply: String? = nil) -> OpaquePointer? {
  guard body.count <= Int(Int32.max) else { return nil }
  var message: OpaquePointer?
  let status = body.withUnsafeBytes {
    natsMsg_Create(&message, subject, reply, $0.baseAddress?.assumingMemoryBound(to: CChar.self), Int32($0.count))
  }
  guard status == NATS_OK, natsMsgHeader_Set(message, MessageHeader.key, header) == NATS_OK else {
    fatalError("A message could not be made: \(NATSBridgeError.text(of: status)). Memory is out.")
  }
  return message
}

/// Nanoseconds since 1970.
func wallClock() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Traps unless events can be sent under a subject.
func checkSubject<E>(_ subject: String, of type: E.Type) {
  let words = subject.split(separator: ".", omittingEmptySubsequences: false)
  let isValid = words.allSatisfy { word in
    !word.isEmpty && word.allSatisfy { !$0.isWhitespace && $0 != "*" && $0 != ">" && $0 != "\0" }
  }
  guard !isValid else { return }
  fatalError(
    """
    The subject of a RemoteEvent is words that are separated by dots, without wildcards and spaces, and that of \
    \(E.self) is "\(subject)": give it one such as "sensors.temperature".
    """)
}
