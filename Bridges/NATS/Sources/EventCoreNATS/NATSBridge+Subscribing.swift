// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// One file, though long: the way of a message from the client to its receivers, and what of it is counted.

import CNATS
@_spi(Bridge) import EventCore
import Foundation
import Synchronization

extension NATSBridge {
  /// Dispatches here every event of a type that other machines publish.
  ///
  /// Each registration does so: if two bring an event, of one bridge or of two on a central, also by a pattern of both,
  /// it is dispatched twice.
  ///
  /// - Parameters:
  ///   - type: Whose subject to subscribe to.
  ///   - subject: Another subject, or a pattern of several: `"sensors.*.temperature"`, `"sensors.>"`. The subject of an
  ///     event is told to its ``RemoteEvent/arrived(_:)``. Requests do not come by it, unless the pattern has
  ///     `eventcore.request`, as `>` does.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed, or the subject is none.
  ///
  /// **Order**: for each sender and type that in which it was sent.
  ///
  /// It gets what is published after the server knows of the subscription, which is soon after this returns:
  /// ``settle(within:)`` waits for that.
  @discardableResult
  public func subscribe<E: RemoteEvent>(
    _ type: E.Type, to subject: String? = nil
  ) throws(NATSBridgeError) -> RemoteRegistration {
    try subscribe(E.self, subject, nil)
  }

  /// Dispatches here a share of the events of a type: each goes to one bridge of the group, on any machine.
  ///
  /// The machine that dispatches an event handles it too if it has receivers for it; those of the same central that are
  /// in the group take their share of what it sends, and drop it, since it was dispatched there.
  ///
  /// - Parameters:
  ///   - type: Whose subject to subscribe to.
  ///   - subject: Another subject, or a pattern of several.
  ///   - group: The name of the group: all bridges that pass it share the events.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed, or the subject or the name of the group is none.
  ///
  /// At most once: a machine that ends before it has handled an event takes it along. ``durable(_:stream:as:options:)``
  /// gives it to another one.
  @discardableResult
  public func subscribe<E: RemoteEvent>(
    _ type: E.Type, to subject: String? = nil, group: String
  ) throws(NATSBridgeError) -> RemoteRegistration {
    try subscribe(E.self, subject, group)
  }

  private func subscribe<E: RemoteEvent>(
    _ type: E.Type, _ subject: String?, _ group: String?
  ) throws(NATSBridgeError) -> RemoteRegistration {
    if subject == nil { checkSubject(E.subject, of: "the RemoteEvent \(E.self)") }
    let reader = Reader(E.self, self)
    return try receive(subject ?? E.subject, group) { message in
      reader.dispatchAll(message)
    }
  }

  /// Returns when the server knows of every subscription that was made before.
  ///
  /// - Throws: If it does not answer within some time, or the bridge was closed. While the client has the connection to
  ///   itself (``NATSBridge``), some half a second later.
  public func settle(within limit: Duration = .seconds(10)) async throws(NATSBridgeError) {
    let deadline = ContinuousClock.Instant(after: limit)
    let result = await resultOrNil(about: deadline) { [link] in
      await blocking {
        Result { () throws(NATSBridgeError) in
          try NATSBridgeError.check(link.flush(within: deadline.milliseconds()), "reach the server within \(limit)")
        }
      }
    }
    guard let result else {
      throw NATSBridgeError(
        .timedOut,
        """
        The client of NATS could not reach the server within \(limit): it still writes to a network that takes \
        nothing, or attempts to connect.
        """)
    }
    try result.get()
  }

  /// Subscribes to a subject. `handle` is called on a thread of the client, one call at a time.
  ///
  /// - Parameters:
  ///   - isForReplies: Whether handlers may wait for what comes, so that a drain goes on with it until they have ended.
  ///   - undo: Takes back what was done before, if this throws.
  func receive(
    _ subject: String, _ group: String?, isForReplies: Bool = false, or undo: () -> Void = {},
    _ handle: @escaping @Sendable (OpaquePointer) -> Void
  ) throws(NATSBridgeError) -> RemoteRegistration {
    do throws(NATSBridgeError) {
      guard subject.utf8.count + (group?.utf8.count ?? 0) <= longestSubjects else {
        throw NATSBridgeError(.other, "A subject and a group have at most \(longestSubjects) bytes together.")
      }
      // Bytes: the server sees a dot also before a mark that would combine with it.
      let words = subject.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      guard words.allSatisfy(isName) else {
        throw NATSBridgeError(
          .other,
          """
          A subject is words that are separated by dots, without spaces, and \(subject.debugDescription) is none: give \
          one such as "sensors.*.temperature".
          """)
      }
      if let group, !isName(group.utf8[...]) {
        throw NATSBridgeError(
          .other,
          """
          The name of a group has at least one sign and no spaces, and \(group.debugDescription) is none: give one \
          such as "workers".
          """)
      }
      return try receive(subject, group, Inlet(handle), isForReplies: isForReplies)
    } catch {
      undo()
      throw error
    }
  }

  /// - Parameter inFlight: So many messages may wait at least, of any length.
  func receive(
    _ subject: String, _ group: String?, _ inlet: Inlet, inFlight: Int = 0, isForReplies: Bool = false
  ) throws(NATSBridgeError) -> RemoteRegistration {
    var subscription: OpaquePointer?
    let status =
      group.map {
        natsConnection_QueueSubscribe(&subscription, link.connection, subject, $0, Inlet.handler, inlet.context)
      } ?? natsConnection_Subscribe(&subscription, link.connection, subject, Inlet.handler, inlet.context)
    guard status == NATS_OK, let subscription else {
      inlet.letGo()
      try NATSBridgeError.check(status, "subscribe to \(subject)")
      throw NATSBridgeError(.other, "The client of NATS could not subscribe to \(subject).")
    }
    // One message of any length that is taken, with its headers, and so many of a stream. The client counts in 32 bits,
    // and adds a message to what waits before it compares: the limit leaves room for one of 64 MiB.
    let inbox = min(options.inbox, longestInbox)
    let bytes = max(inbox << 10, min(inFlight, longestInbox) << 20, min(options.longestMessage, 1 << 31) + 65_536)
    let most = Int32(min(bytes, Int(Int32.max) - (64 << 20)))
    natsSubscription_SetPendingLimits(subscription, Int32(clamping: max(inbox, inFlight)), most)
    // It fails if the bridge was closed meanwhile. Then nobody knows when the last call ends, and the inlet stays.
    natsSubscription_SetOnCompleteCB(subscription, Inlet.end, inlet.context)
    return keep(
      RemoteRegistration(inward: subscription, overrun: inlet.overrun, isForReplies: isForReplies, of: self))
  }
}

/// Whether the server takes bytes for a word or a name. Other spaces than those of ASCII are no spaces to it, and the
/// name of a mounted node may have them.
private func isName(_ bytes: Substring.UTF8View) -> Bool {
  let spaces: [UInt8] = [0, 9, 10, 11, 12, 13, 32]
  return !bytes.isEmpty && !bytes.contains(where: spaces.contains)
}

/// What the client calls for the messages of a subscription.
///
/// Ownership: the client has a reference until the subscription's last call.
final class Inlet: Sendable {
  private let handle: @Sendable (OpaquePointer) -> Void
  let overrun = Overrun()

  init(_ handle: @escaping @Sendable (OpaquePointer) -> Void) {
    self.handle = handle
    _ = Unmanaged.passRetained(self)
  }

  var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
  /// Gives the client's reference back. Once.
  func letGo() { Unmanaged.passUnretained(self).release() }

  static let handler: natsMsgHandler = { _, subscription, message, context in
    guard let message, let context else { return }
    defer { SpentMessages.shared.add(message) }
    Unmanaged<Inlet>.fromOpaque(context)._withUnsafeGuaranteedRef { inlet in
      if let subscription { inlet.overrun.note(of: subscription) }
      inlet.handle(message)
    }
  }
  static let end: natsOnCompleteCB = { context in
    guard let context else { return }
    Unmanaged<Inlet>.fromOpaque(context).release()
    // The last messages may have come while the bridge ended.
    SpentMessages.shared.destroyAll()
  }
}

/// How many messages of a subscription the client has dropped, or had when it ended. Any thread.
///
/// The registration and the inlet share it: a registration that retained the inlet, whose handler may lead back to it,
/// would never end.
final class Overrun: Sendable {
  /// Relaxed, both: the client's lock of the subscription orders them.
  private let isDraining = Atomic<Bool>(false)
  private let last = Atomic<Int>(0)
  /// What waited when the subscription ended; less than 0 before. Relaxed: a count, which the first to end it stores.
  private let left = Atomic<Int>(-1)

  /// The last known number.
  var count: Int { last.load(ordering: .relaxed) + max(0, left.load(ordering: .relaxed)) }

  /// Ends a subscription, of which the client tells nothing afterwards, and counts what waits. A message that the
  /// client takes or begins to dispatch between the two is counted neither, or twice.
  func end(_ subscription: OpaquePointer) {
    count(of: subscription)
    var waiting = Int32(0)
    if natsSubscription_GetPending(subscription, &waiting, nil) == NATS_OK {
      _ = left.compareExchange(expected: -1, desired: Int(waiting), ordering: .relaxed)
    }
    natsSubscription_Unsubscribe(subscription)
  }

  /// The last known number once the subscription has ended, of which the client tells nothing.
  @discardableResult
  func count(of subscription: OpaquePointer) -> Int {
    var dropped: Int64 = 0
    guard natsSubscription_GetDropped(subscription, &dropped) == NATS_OK else { return count }
    // Another thread may have stored a later number.
    last.max(Int(dropped), ordering: .relaxed)
    return count
  }

  /// Before the drain of its subscription. From then on each message notes what was dropped: the client drops a message
  /// because others wait, and the last of those comes after it. None is dropped because it alone is longer than all
  /// that may wait, after which no other might come: the server's longest message may wait.
  func beginDrain(of subscription: OpaquePointer, longest: Int64) {
    isDraining.store(true, ordering: .relaxed)
    var (messages, bytes) = (Int32(0), Int32(0))
    if natsSubscription_GetPendingLimits(subscription, &messages, &bytes) == NATS_OK {
      natsSubscription_SetPendingLimits(subscription, messages, max(bytes, Int32(clamping: longest)))
    }
    count(of: subscription)
  }

  /// For a message that has come.
  func note(of subscription: OpaquePointer) {
    if isDraining.load(ordering: .relaxed) { count(of: subscription) }
  }
}

/// Makes events of one type from messages, which may come from anybody. Any thread.
final class Reader<E: RemoteEvent>: Sendable {
  private let coding = E.coding
  private let json = RemoteCoding<E>.json
  private let cbor = RemoteCoding<E>.cbor
  private let name = E.remoteName
  private let central: EventCentral
  private let counters: Counters
  private let sender: String
  private let longest: Int

  init(_ type: E.Type, _ bridge: NATSBridge) {
    (central, counters, sender) = (bridge.central, bridge.counters, bridge.sender)
    longest = bridge.options.longestMessage
  }

  /// Nil if the message is none of the type, which is counted.
  func read(_ message: OpaquePointer, takesOwn: Bool = false) -> (event: E, origin: RemoteOrigin)? {
    counters.received.increment()
    guard let (origin, coding) = readOrigin(message, takesOwn: takesOwn) else { return nil }
    let length = Int(natsMsg_GetDataLength(message))
    let bytes = UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: length)
    var event: E?
    decode(bytes, coding, origin) { event = $0 }
    return event.map { ($0, origin) }
  }

  /// Dispatches the event of a message, or the events of a batch.
  func dispatchAll(_ message: OpaquePointer) {
    readAll(message) { dispatch($0, $1, of: message) }
  }

  /// Calls a closure with the event of a message, or one by one with those of a batch. What is none is counted.
  func readAll(_ message: OpaquePointer, takesOwn: Bool = false, _ take: (E, RemoteOrigin) -> Void) {
    var line: UnsafePointer<CChar>?
    switch natsMsgHeader_Get(message, EventBatch.key.bytes, &line) {
    case NATS_OK: break
    case NATS_NOT_FOUND:
      guard let (event, origin) = read(message, takesOwn: takesOwn) else { return }
      return take(event, origin)
    default:
      // The client says so once, and then of the other headers that there are none.
      counters.received.increment()
      return counters.malformed.increment()
    }
    guard let (origin, coding) = readOrigin(message, takesOwn: takesOwn) else { return counters.received.increment() }
    var body = UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: Int(natsMsg_GetDataLength(message)))
    let number = line.flatMap { Int(String(cString: $0)) } ?? 0
    var left = number
    // As far as it goes: the number is the sender's word.
    while left > 0, let bytes = EventBatch.takeFirst(&body) {
      left -= 1
      counters.received.increment()
      decode(bytes, coding, origin) { take($0, origin) }
    }
    guard number < 1 || left != 0 || !body.isEmpty else { return }
    counters.received.increment()
    counters.malformed.increment()
  }

  /// Nil if the message says that it has no event of the type for this central, which is counted.
  private func readOrigin(
    _ message: OpaquePointer, takesOwn: Bool
  ) -> (origin: RemoteOrigin, coding: RemoteCoding<E>)? {
    var coding = coding.form == nil ? coding : json
    var origin = RemoteOrigin(
      subject: natsMsg_GetSubject(message).map { String(cString: $0) } ?? "", sentAt: nil, version: nil,
      method: .queue, priority: .normal)
    var line: UnsafePointer<CChar>?
    switch natsMsgHeader_Get(message, MessageHeader.key.bytes, &line) {
    case NATS_NOT_FOUND: break
    case NATS_OK:
      guard let line, let header = MessageHeader(line: line) else {
        return count(counters.malformed)
      }
      guard header.type.isText(name) else { return count(counters.foreign) }
      guard takesOwn || !header.sender.isText(sender) else { return count(counters.own) }
      origin.sentAt = Date(timeIntervalSince1970: Double(header.time) / 1e9)
      (origin.version, origin.method, origin.priority) = (header.version, header.method, header.priority)
      if let form = header.form, coding.form != nil {
        guard form.isText(RemoteCoding<E>.Form.cbor.rawValue) else { return count(counters.undecodable) }
        coding = cbor
      }
    default: return count(counters.malformed)
    }
    return (origin, coding)
  }

  /// Calls a closure with the event, if it is one; or else counts. Not as a result: an optional of a type that the
  /// compiler does not know costs a search for its metadata.
  private func decode(
    _ bytes: UnsafeRawBufferPointer, _ coding: RemoteCoding<E>, _ origin: RemoteOrigin, _ take: (E) -> Void
  ) {
    guard bytes.count <= longest else { return counters.tooLong.increment() }
    do {
      // A copy, since a coding may keep it.
      var event = try coding.decode(Data(bytes), origin.version)
      event.arrived(origin)
      take(event)
    } catch {
      counters.undecodable.increment()
    }
  }

  private func count<Result>(_ counter: borrowing Atomic<Int>) -> Result? {
    counter.increment()
    return nil
  }

  /// - Parameters:
  ///   - isKept: Whether it may be the newest that the central keeps.
  ///   - isAgain: Whether to dispatch it once more, asked with what became of it. The last time counts.
  @discardableResult
  func dispatch(
    _ event: E, _ origin: RemoteOrigin, of message: OpaquePointer, isKept: Bool = true,
    while isAgain: (EventDispatchOutcome) -> Bool = { _ in false }
  ) -> EventDispatchOutcome {
    var outcome = EventDispatchOutcome()
    central.withCarriedFields(fields(of: message)) {
      repeat {
        outcome = central.dispatchInward(event, by: origin.method, priority: origin.priority, isKept: isKept)
      } while isAgain(outcome)
    }
    if outcome.accepted > 0 { counters.dispatched.increment() } else { counters.unheard.increment() }
    return outcome
  }
}
