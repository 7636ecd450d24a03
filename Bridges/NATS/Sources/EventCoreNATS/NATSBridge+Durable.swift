// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@_spi(Bridge) import EventCore
import Foundation

extension NATSBridge {
  /// How a server delivers the events of a stream to those who share a name.
  public struct DurableOptions: Sendable {
    /// How long the server waits for an event to be handled before it delivers it again. More than zero.
    public var patience = Duration.seconds(30)
    /// How many events may be on their way or with handlers at one time, on all machines together, at least 1; a batch
    /// is one. More than 2,000,000 are as many as that. The number says nothing of their bytes: the server breaks the
    /// connection of a machine for which more than its `max_pending` wait, 64 MiB by default, so let long events be
    /// fewer.
    public var inFlight = 1000
    /// How long the server keeps an event that nobody took here: there was no receiver, or one was full. Events of a
    /// batch whose first ones were taken are offered again here, as often.
    public var delay = Duration.milliseconds(200)

    public init() {}

    fileprivate func check() {
      guard inFlight > 0 else {
        fatalError(
          """
          DurableOptions.inFlight is how many events may be on their way, at least 1, and this one is \(inFlight), \
          which the server takes for another number: set it to 1 or more.
          """)
      }
      guard patience > .zero else {
        fatalError(
          """
          DurableOptions.patience is how long an event may take, more than zero, and this one is \(patience), with \
          which each would come again before it is handled: set it to longer than a handler takes.
          """)
      }
    }
  }

  /// Makes a stream, in files of the server's, that keeps the events of some types, without limits. One that is there
  /// under that name stays as it is, since others may use it, and has to keep them already; limits that it has may have
  /// it forget events that nobody got yet (<doc:BeyondOneMachine>).
  ///
  /// - Parameters:
  ///   - name: 1 to 255 bytes without whitespace, control characters, `.`, `*`, `>`, `/`, `\` and `"`.
  ///   - types: At least one, with subjects without `\` and `"`.
  /// - Throws: If the server has no JetStream, if another stream keeps the same subjects, or if that of this name does
  ///   not keep all of them: then add them with the tools of the server.
  public func makeStream(_ name: String, of types: [any DurableEvent.Type]) async throws(NATSBridgeError) {
    for type in types { checkDurable(type) }
    try checkName(name, of: "stream")
    // Each once, or the server refuses the stream. Bytes: to it two forms of Unicode are two subjects.
    var known: Set<[UInt8]> = []
    let subjects = types.map { $0.subject }.filter { known.insert(Array($0.utf8)).inserted }
    guard !subjects.isEmpty else {
      throw NATSBridgeError(
        .other, "A stream keeps the subjects of some types, and \(name) is to keep those of none: name one.")
    }
    try await withStreams { streams throws(NATSBridgeError) in
      guard try findStream(name, keeping: subjects, streams) != NATS_OK else { return NATS_OK }
      var configuration = jsStreamConfig()
      jsStreamConfig_Init(&configuration)
      var copies = subjects.map { UnsafePointer(strdup($0)) }
      defer { for copy in copies { free(UnsafeMutablePointer(mutating: copy)) } }
      return name.withCString { name in
        copies.withUnsafeMutableBufferPointer { copies in
          configuration.Name = name
          configuration.Subjects = copies.baseAddress
          configuration.SubjectsLen = Int32(copies.count)
          return js_AddStream(nil, streams, &configuration, nil, nil)
        }
      }
    } or: { "make the stream \(name)" }
  }

  /// Has the server keep every event of a type that is dispatched on this machine, in a stream.
  ///
  /// As ``publish(_:batch:)``, but an event leaves the outbox only when the server has stored it. If the connection
  /// breaks meanwhile it is sent once more, under the same number, by which the stream knows it for two minutes: it is
  /// stored once. So events go one at a time, each in a round trip. One that is longer than the stream takes is
  /// ``Counts/tooLarge``.
  ///
  /// While the stream does not store an event, all that the bridge publishes waits behind it, until it does or the
  /// bridge ends: the stream is full, was deleted, or has other subjects by now, or this client may not publish to it.
  /// ``NATSStatus/Change/fault(_:)`` tells when that begins.
  ///
  /// - Parameters:
  ///   - type: The exact type of event. Either this or ``publish(_:batch:)``.
  ///   - stream: The stream that has the type's subject (``makeStream(_:of:)``).
  /// - Throws: If there is no such stream, or it does not keep the type's subject.
  @discardableResult
  public func publish<E: DurableEvent>(
    _ type: E.Type, stream: String
  ) async throws(NATSBridgeError) -> RemoteRegistration {
    checkDurable(E.self)
    try checkName(stream, of: "stream")
    try await withStreams { streams throws(NATSBridgeError) in
      try findStream(stream, keeping: [E.subject], streams)
    } or: { "find the stream \(stream)" }
    let outlet = Outlet(E.self, self)
    let publisher = StreamPublisher(link, stream)
    return publish { (event: E, priority, method, time) in
      let number = publisher.nextNumber()
      outlet.send(event, under: E.subject, method, priority, time, into: stream) { message, _ in
        publisher.store(message, number)
      }
    }
  }

  /// Dispatches here the events that a stream keeps, each until it was handled: at least once.
  ///
  /// ```swift
  /// try await bridge.durable(Order.self, stream: "ORDERS", as: "billing")
  /// ```
  ///
  /// All bridges that pass the same name share the events, and go on where the name was left, also after all of them
  /// were away. An event counts as handled when its last copy is gone (``NATSDelivery``). If that takes longer than
  /// ``DurableOptions/patience``, if its machine ends, or if no receiver accepts it or one refuses it here, the server
  /// delivers it again: handlers have to bear an event twice.
  ///
  /// The events of a batch (``publish(_:batch:)``) share one delivery: it is handled when the last copy of all is gone,
  /// and what brings one of them again brings all. A receiver may have less room than a batch has events: once it has
  /// the first one, the others wait for room, up to ``DurableOptions/patience`` each, and what comes behind waits, too.
  /// Another receiver that does take such an event gets it again each time that it is offered.
  ///
  /// A message that this bridge cannot read, such as one of a later form or longer than ``Options/longestMessage``, is
  /// counted, and not delivered again under this name, also not to a machine that could read it: it would come for
  /// ever. It stays in the stream, for other names, unless the stream keeps only what was not handled yet. So have all
  /// machines of a name read a new form before one sends it.
  ///
  /// Events that this machine has published come back as well, and then have a ``DurableEvent/delivery``. Receivers
  /// here had them without one when they were dispatched. What comes with a delivery is not kept by
  /// `keepNewest(on:maximumAge:)`, which would hold it.
  ///
  /// - Parameters:
  ///   - type: Whose events.
  ///   - stream: Where they are kept.
  ///   - name: Who handles them; of the same characters as the name of a stream, and for one type: who handles two
  ///     takes two names. One that another tool has made delivers whole messages to a group of that name, with explicit
  ///     acknowledgements, and without a limit of deliveries, storage in memory, heartbeats or flow control.
  ///   - options: They hold from the first use of the name on, and later ones do not change them, but for `delay`.
  /// - Returns: Ends it, and leaves name and events with the server.
  /// - Throws: If there is no such stream, it does not keep the type's subject, or the name is for another type or
  ///   was made otherwise.
  ///
  /// **Order**: that of the stream, among events that are delivered for the first time.
  @discardableResult
  public func durable<E: DurableEvent>(
    _ type: E.Type, stream: String, as name: String, options: DurableOptions = DurableOptions()
  ) async throws(NATSBridgeError) -> RemoteRegistration {
    options.check()
    checkDurable(E.self)
    try checkName(stream, of: "stream")
    try checkName(name, of: "durable subscription")
    let target = Locked("eventcore.deliver.\(stream).\(name)")
    let inFlight = Locked(min(options.inFlight, longestInbox))
    let ackWait = Locked(options.patience)
    try await withStreams { streams throws(NATSBridgeError) in
      var known: UnsafeMutablePointer<jsConsumerInfo>?
      defer { jsConsumerInfo_Destroy(known) }
      let status = js_GetConsumerInfo(&known, streams, stream, name, nil, nil)
      if status == NATS_OK {
        guard let configuration = known?.pointee.Config?.pointee else { return NATS_ERR }
        try checkSubject(of: configuration, is: E.subject, name)
        let place = try deliverSubject(of: configuration, name)
        target.withLock { $0 = place }
        inFlight.withLock { $0 = Int(clamping: configuration.MaxAckPending) }
        ackWait.withLock { $0 = .nanoseconds(configuration.AckWait) }
        return NATS_OK
      }
      let found = try findStream(stream, keeping: [E.subject], streams)
      guard found == NATS_OK else { return found }
      // Not after another failure: to make one that is there changes it, for those who use it as well.
      guard status == NATS_NOT_FOUND else { return status }
      var configuration = jsConsumerConfig()
      jsConsumerConfig_Init(&configuration)
      configuration.AckWait = options.patience.milliseconds * 1_000_000
      configuration.MaxAckPending = Int64(inFlight.withLock { $0 })
      return name.withCString { name in
        target.withLock { $0 }.withCString { target in
          E.subject.withCString { subject in
            configuration.Durable = name
            configuration.DeliverGroup = name
            configuration.DeliverSubject = target
            configuration.FilterSubject = subject
            return js_AddConsumer(nil, streams, stream, &configuration, nil, nil)
          }
        }
      }
    } or: { "use the stream \(stream) as \(name)" }
    let reader = Reader(E.self, self)
    let bridge = (link: link, counters: counters)
    let (place, most) = (target.withLock { $0 }, inFlight.withLock { $0 })
    let patience = ackWait.withLock { $0 }
    let inlet = Inlet { message in
      guard let delivery = NATSDelivery(message, of: stream, as: name, bridge) else {
        bridge.counters.received.increment()
        return bridge.counters.malformed.increment()
      }
      var (isRead, isTaken) = (false, true)
      reader.readAll(message, takesOwn: true) { arrived, origin in
        var event = arrived
        event.delivery = delivery
        var end = ContinuousClock.Instant?.none
        // What keeps the newest event would hold its delivery, or lose it for the next one.
        let outcome = reader.dispatch(event, origin, of: message, isKept: false) { outcome in
          // Once receivers have the first events of a batch, the others wait here for room: if it came again as a
          // whole, those that have less room would get the first ones for ever.
          guard isRead, isTaken, outcome.refused > 0, !bridge.link.hasEnded else { return false }
          let now = ContinuousClock.now
          let last = end ?? now + patience.bounded
          end = last
          guard now < last else { return false }
          // Not for another machine meanwhile: again while there is time.
          delivery.extend()
          bridge.link.awaitChange(within: min(options.delay, patience / 3, now.duration(to: last)))
          return true
        }
        isRead = true
        if outcome.accepted == 0 || outcome.refused > 0 || outcome.dropped > 0 { isTaken = false }
      }
      if !isRead { delivery.refuse() } else if !isTaken { delivery.giveBack(after: options.delay) }
    }
    // Not by the client's function for streams, which takes messages without a body for the server's, and obeys them.
    let result = await blocking { [self] in
      Swift.Result { () throws(NATSBridgeError) in try receive(place, name, inlet, inFlight: most) }
    }
    return try result.get()
  }

  /// Calls the client's functions for streams, which wait for the server, on a thread of its own.
  private func withStreams(
    _ body: @escaping @Sendable (OpaquePointer) throws(NATSBridgeError) -> natsStatus,
    or what: @escaping @Sendable () -> String
  ) async throws(NATSBridgeError) {
    let result = await blocking { [link] in
      Swift.Result { () throws(NATSBridgeError) in
        var streams: OpaquePointer?
        try NATSBridgeError.check(natsConnection_JetStream(&streams, link.connection, nil), what())
        defer { jsCtx_Destroy(streams) }
        if let streams { try NATSBridgeError.check(try body(streams), what()) }
      }
    }
    try result.get()
  }
}

/// Traps unless streams can keep the events of a type.
private func checkDurable(_ type: any DurableEvent.Type) {
  checkSubject(type.subject, of: "the DurableEvent \(type)", isKept: true)
}

/// Throws unless a stream or a consumer may have the name. It stands in subjects, and what these cannot have breaks the
/// connection.
private func checkName(_ name: String, of what: String) throws(NATSBridgeError) {
  let isValid = name.unicodeScalars.allSatisfy {
    !$0.properties.isWhitespace && $0.properties.generalCategory != .control && !".*>/\\\"".unicodeScalars.contains($0)
  }
  guard isValid, 1...255 ~= name.utf8.count else {
    throw NATSBridgeError(
      .other,
      """
      The name of a \(what) has 1 to 255 bytes, without whitespace, control characters, dots, wildcards, slashes and \
      quotes, and \(name.debugDescription) is none.
      """)
  }
}

/// Throws if a durable subscription that is there is for another subject.
private func checkSubject(
  of known: jsConsumerConfig, is subject: String, _ name: String
) throws(NATSBridgeError) {
  // None is every subject of the stream, as other tools make it.
  guard let filter = known.FilterSubject.map({ String(cString: $0) }), !filter.isEmpty,
    !filter.utf8.elementsEqual(subject.utf8)
  else { return }
  throw NATSBridgeError(
    .other,
    """
    The name of a durable subscription is for one type, and \(name) is for the subject \(filter) in that stream, not \
    for \(subject): take another name for this type.
    """)
}

/// Where a durable subscription that is there delivers. Throws unless bridges can share that.
private func deliverSubject(of known: jsConsumerConfig, _ name: String) throws(NATSBridgeError) -> String {
  if let target = known.DeliverSubject.map({ String(cString: $0) }), !target.isEmpty,
    // Bytes, as everywhere: to the server two forms of Unicode are two names.
    let group = known.DeliverGroup.map({ String(cString: $0) }), group.utf8.elementsEqual(name.utf8),
    known.AckPolicy == js_AckExplicit, known.MaxDeliver <= 0, !known.HeadersOnly, !known.MemoryStorage,
    known.Heartbeat == 0, !known.FlowControl
  {
    return target
  }
  throw NATSBridgeError(
    .other,
    """
    Bridges share a durable subscription that delivers whole messages to a group of its own name, with explicit \
    acknowledgements, and without a limit of deliveries, storage in memory, heartbeats or flow control, and \(name) \
    was made otherwise by another program: take another name, or make it so with the tools of the server.
    """)
}

/// Whether there is a stream of that name. Throws if there is, and it does not keep all of some subjects.
private func findStream(
  _ name: String, keeping subjects: [String], _ streams: OpaquePointer
) throws(NATSBridgeError) -> natsStatus {
  var known: UnsafeMutablePointer<jsStreamInfo>?
  defer { jsStreamInfo_Destroy(known) }
  let status = js_GetStreamInfo(&known, streams, name, nil, nil)
  guard status == NATS_OK, let stream = known?.pointee.Config?.pointee else { return status }
  let patterns = (0..<Int(stream.SubjectsLen)).compactMap { stream.Subjects[$0].map { String(cString: $0) } }
  let missing = subjects.filter { subject in !patterns.contains { isSubject(subject, of: $0) } }
  guard !missing.isEmpty else { return NATS_OK }
  throw NATSBridgeError(
    .other,
    """
    A stream keeps only events of its own subjects, and the stream \(name) has \(patterns.joined(separator: ", ")), \
    but not \(missing.joined(separator: ", ")): add that with the tools of the server, or take a stream of another name.
    """)
}

/// Whether a pattern, such as `orders.*` or `orders.>`, is one of a subject.
func isSubject(_ subject: String, of pattern: String) -> Bool {
  func words(_ text: String) -> [Substring.UTF8View] {
    text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
  }
  let (words, wanted) = (words(subject), words(pattern))
  for (index, word) in wanted.enumerated() {
    guard index < words.count else { return false }
    if word.elementsEqual(">".utf8) { return true }
    guard word.elementsEqual("*".utf8) || word.elementsEqual(words[index]) else { return false }
  }
  return words.count == wanted.count
}

/// Has a stream store messages. On the bridge's thread.
private final class StreamPublisher: @unchecked Sendable {
  private let link: Link
  private let stream: String
  /// Tells the numbers of this publisher from those of all others.
  private let prefix = String(UInt64.random(in: .min ... .max), radix: 16)
  // Both: the bridge's thread only.
  private var number = 0
  private var streams: OpaquePointer?

  init(_ link: Link, _ stream: String) {
    (self.link, self.stream) = (link, stream)
  }

  deinit {
    jsCtx_Destroy(streams)
  }

  func nextNumber() -> String {
    number += 1
    return "\(prefix).\(number)"
  }

  /// Returns when the stream has stored the message, or does not take it, or did not within some time.
  func store(_ message: OpaquePointer, _ number: String) -> natsStatus {
    if streams == nil {
      let status = natsConnection_JetStream(&streams, link.connection, nil)
      guard status == NATS_OK else { return status }
    }
    var options = jsPubOptions()
    jsPubOptions_Init(&options)
    options.MaxWait = link.timeLeft(atMost: 2000)
    var refusal = jsErrCode(0)
    let status = number.withCString { number in
      stream.withCString { stream in
        options.MsgId = number
        options.ExpectStream = stream
        return js_PublishMsg(nil, streams, message, &options, &refusal)
      }
    }
    // The message, or its header, is longer than the stream takes: it would say so for ever.
    let isTooLarge = refusal == JSStreamMessageExceedsMaximumErr || refusal.rawValue == 10_097
    return isTooLarge ? NATS_MAX_PAYLOAD : status
  }
}
