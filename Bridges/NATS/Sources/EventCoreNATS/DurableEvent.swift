// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Synchronization

/// An event that a server keeps until it was handled (``NATSBridge/durable(_:stream:as:options:)``).
///
/// ```swift
/// struct Order: DurableEvent {
///   static let subject = "orders.placed"
///   var number: Int
///   var delivery: NATSDelivery?
/// }
/// ```
public protocol DurableEvent: RemoteEvent {
  /// The delivery of an event that the server waits for; nil for others. Declare it, and leave it to the bridge. It is
  /// not part of what is sent.
  var delivery: NATSDelivery? { get set }
}

/// A delivery that the server waits for: the event counts as handled when its last copy is gone, which is when all
/// handlers have run, unless one of them has kept it.
///
/// An event whose receiver ends without handling it, by `cancel()` or a drain that gives up at its deadline, or that a
/// bounded mailbox drops later on in favour of others, is gone as well, and so counts as handled. End receivers of
/// durable events by `drain`; if that has a deadline, end the bridge first (<doc:BeyondOneMachine>).
///
/// **Threads**: any, for every member.
public final class NATSDelivery: Sendable, Codable, Equatable {
  /// How often the server has delivered the event, with this time: 1 for the first. 0 for one that no server waits for.
  public let attempt: Int
  /// The place of the event's message in its stream, from 1 on; 0 for one that no server waits for.
  public let position: Int
  private let subject: String?
  private let link: Link?
  private let counters: Counters?
  private let isDecided = Atomic<Bool>(false)

  /// Nil unless the message says that it is of this stream, for this name: anybody could send another one, to have the
  /// bridge send to a subject that he may not use himself.
  init?(
    _ message: OpaquePointer, of stream: String, as name: String, _ bridge: (link: Link, counters: Counters)
  ) {
    var known: UnsafeMutablePointer<jsMsgMetaData>?
    natsMsg_GetMetaData(&known, message)
    defer { jsMsgMetaData_Destroy(known) }
    // Bytes: to the server two forms of Unicode are two names.
    guard let data = known?.pointee,
      let itsStream = data.Stream.map({ String(cString: $0) }), itsStream.utf8.elementsEqual(stream.utf8),
      let itsName = data.Consumer.map({ String(cString: $0) }), itsName.utf8.elementsEqual(name.utf8)
    else { return nil }
    subject = natsMsg_GetReply(message).map { String(cString: $0) }
    (link, counters) = (bridge.link, bridge.counters)
    attempt = Int(clamping: data.NumDelivered)
    position = Int(clamping: data.Sequence.Stream)
    bridge.link.deliveries.enter()
  }

  /// Of an event that was encoded with its delivery: one that no server waits for.
  public init(from decoder: any Decoder) throws {
    (attempt, position, subject, link, counters) = (0, 0, nil, nil, nil)
  }

  /// Encodes nothing.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encodeNil()
  }

  public static func == (lhs: NATSDelivery, rhs: NATSDelivery) -> Bool { lhs === rhs }

  deinit {
    if !isDecided.load(ordering: .relaxed) { decide("+ACK") }
  }

  /// Tells the server that the event was not handled: it delivers it again, here or to another machine. Once the bridge
  /// has ended nobody hears of it, and the server delivers the event again after its time.
  ///
  /// - Parameter delay: When.
  public func giveBack(after delay: Duration = .zero) {
    guard !isDecided.exchange(true, ordering: .relaxed) else { return }
    if link?.hasEnded == false { counters?.givenBack.increment() }
    decide(delay > .zero ? "-NAK {\"delay\": \(delay.milliseconds * 1_000_000)}" : "-NAK")
  }

  /// Tells the server that the event is still being handled: its time begins anew
  /// (``NATSBridge/DurableOptions/patience``).
  public func extend() {
    guard !isDecided.load(ordering: .relaxed) else { return }
    answer("+WPI")
  }

  /// Tells the server that nothing of the message can be read: it does not deliver that again under this name.
  func refuse() {
    guard !isDecided.exchange(true, ordering: .relaxed) else { return }
    decide("+TERM")
  }

  private func decide(_ word: String) {
    answer(word)
    // Then: a drain that waits for it sends the answer.
    link?.deliveries.leave()
  }

  /// If it is lost, the server delivers the event again. Any thread, also at the end of an event inside a dispatch, so
  /// that it waits for nobody (D5).
  private func answer(_ word: String) {
    guard let subject, let link else { return }
    link.enqueue(isAwaited: false) { natsConnection_PublishString($0.connection, subject, word) }
  }
}
