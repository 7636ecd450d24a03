// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// An event that can leave the machine, with the subject under which it travels.
///
/// ```swift
/// struct TemperatureEvent: RemoteEvent {
///   static let subject = "sensors.temperature"
///   var temperatureInCelsius: Float
/// }
/// ```
///
/// All programs that exchange it declare a type with the same ``subject`` and the same ``remoteName``.
public protocol RemoteEvent: Eventable, Codable {
  /// The subject of NATS: words that are separated by dots, without wildcards and spaces.
  static var subject: String { get }

  /// The name by which messages know the type: by default the type's own, without those of the module and of the types
  /// around it. A message that names another type is not dispatched, and is counted as ``NATSBridge/Counts/foreign``.
  static var remoteName: String { get }

  /// The version of the type's form, 1 by default, at least 0. It travels with each event, for codings of your own and
  /// for ``arrived(_:)``. JSON and CBOR need none: fields that the receiver does not know are ignored, missing ones have
  /// to be optional in the receiver's type.
  static var version: Int { get }

  /// The form in which the event is sent; JSON by default. It is asked for at each registration, not for each event.
  static var coding: RemoteCoding<Self> { get }

  /// Takes what is known of the way of an event that has arrived, right before it is dispatched. It does nothing by
  /// default.
  ///
  /// **Threads**: the one that dispatches, a thread of the client.
  mutating func arrived(_ origin: RemoteOrigin)
}

extension RemoteEvent {
  public static var remoteName: String { String(describing: Self.self) }
  public static var version: Int { 1 }
  public static var coding: RemoteCoding<Self> { .json }
  public mutating func arrived(_ origin: RemoteOrigin) {}
}

/// Where an event came from.
public struct RemoteOrigin: Sendable, Equatable {
  /// The subject of the message.
  public var subject: String
  /// When the event was dispatched at the sender, by the sender's wall clock: as far from yours as the two clocks are
  /// apart, and off by every step of the sender's clock between the dispatch and the sending. The wait there is
  /// measured by the clock of the sender's central: if that is not the system's, this time is off by what the two clocks
  /// went apart meanwhile. Nil if the message does not tell, such as one of another program.
  public var sentAt: Date?
  /// The sender's ``RemoteEvent/version``; nil if the message does not tell.
  public var version: Int?
  /// How the event was dispatched at the sender, and is dispatched here; queued if the message does not tell.
  public var method: EventDispatchMethod
  /// With which priority; normal if the message does not tell.
  public var priority: EventPriority
}

/// The form in which the events of a type travel: JSON, CBOR, or one of your own.
///
/// A message names its form, unless that is JSON. A receiver whose own is JSON or CBOR takes either.
public struct RemoteCoding<Event: Sendable>: Sendable {
  /// What a message may name.
  enum Form: String { case json, cbor }

  /// Nil for a form of the user's own, which messages do not name, and which gets every one.
  let form: Form?
  let encode: @Sendable (Event) throws -> Data
  let decode: @Sendable (Data, _ version: Int?) throws -> Event

  /// A form of your own.
  ///
  /// - Parameters:
  ///   - encode: Returns the bytes of an event; up to the server's limit, 1 MiB by default.
  ///   - decode: Makes an event of bytes that may come from anybody: it throws unless they are one. It also gets the
  ///     sender's ``RemoteEvent/version``, nil if the message does not tell.
  ///
  /// **Threads**: `encode` is called on the bridge's thread for events, in a task for requests, and for answers where
  /// they are given; `decode` on threads of the client. Several calls at once.
  public init(
    encode: @escaping @Sendable (Event) throws -> Data,
    decode: @escaping @Sendable (_ bytes: Data, _ version: Int?) throws -> Event
  ) {
    form = nil
    self.encode = encode
    self.decode = decode
  }

  private init(
    _ form: Form, encode: @escaping @Sendable (Event) throws -> Data,
    decode: @escaping @Sendable (Data) throws -> Event
  ) {
    self.form = form
    self.encode = encode
    self.decode = { bytes, _ in try decode(bytes) }
  }
}

extension RemoteCoding where Event: Codable {
  /// JSON, in the default forms of Foundation.
  public static var json: RemoteCoding {
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    return RemoteCoding(
      .json, encode: { try encoder.encode($0) }, decode: { try decoder.decode(Event.self, from: $0) })
  }

  /// CBOR (RFC 8949), in its deterministic form: binary, and shorter than JSON, above all for numbers and data.
  ///
  /// Fields are entries of a map under the names of their coding keys, or under the numbers of these, which take a byte
  /// each:
  ///
  /// ```swift
  /// private enum CodingKeys: Int, CodingKey { case entity = 1, x, y }
  /// ```
  ///
  /// Dates are seconds since 2001, as in JSON here. A receiver takes keys in any order, names where it has numbers, and
  /// tags, which it passes over; it takes no indefinite lengths, and no more than 128 containers in one another.
  /// Integers have up to 64 bits: an event with an `Int128` is counted as ``NATSBridge/Counts/unencodable``.
  ///
  /// **Complexity**: decoding takes some 40 bytes of memory for each byte, at most, beside what the event takes.
  public static var cbor: RemoteCoding {
    RemoteCoding(
      .cbor, encode: { try CBOREncoder().encode($0) }, decode: { try CBORDecoder().decode(Event.self, from: $0) })
  }
}
