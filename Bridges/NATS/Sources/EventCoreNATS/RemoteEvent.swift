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
  /// for ``arrived(_:)``. JSON needs none: fields that the receiver does not know are ignored, missing ones have to be
  /// optional in the receiver's type.
  static var version: Int { get }

  /// The form in which the event travels; JSON by default. It is asked for at each registration, not for each event.
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
  /// apart, and off by every step of the sender's clock between the dispatch and the sending. Nil if the message does
  /// not tell, such as one of another program.
  public var sentAt: Date?
  /// The sender's ``RemoteEvent/version``; nil if the message does not tell.
  public var version: Int?
  /// How the event was dispatched at the sender, and is dispatched here; queued if the message does not tell.
  public var method: EventDispatchMethod
  /// With which priority; normal if the message does not tell.
  public var priority: EventPriority
}

/// The form in which the events of a type travel.
public struct RemoteCoding<Event: Sendable>: Sendable {
  let encode: @Sendable (Event) throws -> Data
  let decode: @Sendable (Data, _ version: Int?) throws -> Event

  /// A form of your own.
  ///
  /// - Parameters:
  ///   - encode: Returns the bytes of an event; up to the server's limit, 1 MiB by default.
  ///   - decode: Makes an event of bytes that may come from anybody: it throws unless they are one. It also gets the
  ///     sender's ``RemoteEvent/version``, nil if the message does not tell.
  ///
  /// **Threads**: `encode` is called on the bridge's thread, `decode` on those of the client, several at once.
  public init(
    encode: @escaping @Sendable (Event) throws -> Data,
    decode: @escaping @Sendable (_ bytes: Data, _ version: Int?) throws -> Event
  ) {
    self.encode = encode
    self.decode = decode
  }
}

extension RemoteCoding where Event: Codable {
  /// JSON, in the default forms of Foundation.
  public static var json: RemoteCoding {
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    return RemoteCoding(
      encode: { try encoder.encode($0) }, decode: { bytes, _ in try decoder.decode(Event.self, from: bytes) })
  }
}
