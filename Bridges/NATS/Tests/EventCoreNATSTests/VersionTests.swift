// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreNATS
import Foundation
import Testing

/// Two versions of a program exchange an event whose form has changed.
@Suite struct VersionTests {
  struct Old: RemoteEvent, Equatable {
    static let subject = "tests.version"
    static let remoteName = "Order"
    var number: Int
  }
  struct New: RemoteEvent, Equatable {
    static let subject = "tests.version"
    static let remoteName = "Order"
    static let version = 2
    var number: Int
    var customer: String?
  }
  struct Strict: RemoteEvent, Equatable {
    static let subject = "tests.version"
    static let remoteName = "Order"
    var number: Int
    var customer: String
  }
  struct Other: RemoteEvent, Equatable {
    static let subject = "tests.version"
    var number: Int
  }
  /// One that reads both forms by the version.
  struct Numbered: RemoteEvent, Equatable {
    static let subject = "tests.version"
    static let remoteName = "Order"
    static let version = 3
    var text: String
    static var coding: RemoteCoding<Numbered> {
      RemoteCoding(
        encode: { Data($0.text.utf8) },
        decode: { bytes, version in
          if version == 3 { return Numbered(text: String(decoding: bytes, as: UTF8.self)) }
          return Numbered(text: "\(version ?? 0): \(try JSONDecoder().decode(Old.self, from: bytes).number)")
        })
    }
  }

  /// The old form, in CBOR.
  struct Compact: RemoteEvent, Equatable {
    static let subject = "tests.version"
    static let remoteName = "Order"
    static var coding: RemoteCoding<Compact> { .cbor }
    var number: Int
  }

  private func send<Sent: RemoteEvent, Got: RemoteEvent>(
    _ event: Sent, as type: Got.Type
  ) async throws -> (got: [Got], counts: NATSBridge.Counts) {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Got>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Got) in log.append(event) }
    try receiver.subscribe(Got.self)
    try await receiver.settle()
    sender.publish(Sent.self)
    event.queue(on: here)
    #expect(await sender.drain())
    #expect(await eventually { receiver.counts.received == 1 })
    await receiver.drain()
    await thread.drain()
    return (log.entries, receiver.counts)
  }

  @Test("a field that the receiver does not know is passed over")
  func unknownField() async throws {
    #expect(try await send(New(number: 1, customer: "a"), as: Old.self).got == [Old(number: 1)])
  }

  @Test("a field that is missing is nil if it is optional, or else the event is counted as undecodable")
  func missingField() async throws {
    #expect(try await send(Old(number: 1), as: New.self).got == [New(number: 1)])
    let (got, counts) = try await send(Old(number: 1), as: Strict.self)
    #expect(got.isEmpty)
    #expect(counts.undecodable == 1)
  }

  @Test("another type on the subject is counted as foreign")
  func otherType() async throws {
    let (got, counts) = try await send(Other(number: 1), as: Old.self)
    #expect(got.isEmpty)
    #expect(counts.foreign == 1)
  }

  @Test("a coding of one's own reads older forms by their version")
  func ownCoding() async throws {
    #expect(try await send(New(number: 7), as: Numbered.self).got == [Numbered(text: "2: 7")])
    #expect(try await send(Numbered(text: "x"), as: Numbered.self).got == [Numbered(text: "x")])
  }

  @Test("a receiver of JSON takes CBOR, one of CBOR takes JSON, and fields count as in JSON")
  func forms() async throws {
    #expect(try await send(Compact(number: 1), as: Compact.self).got == [Compact(number: 1)])
    #expect(try await send(Compact(number: 1), as: Old.self).got == [Old(number: 1)])
    #expect(try await send(New(number: 1, customer: "a"), as: Compact.self).got == [Compact(number: 1)])
    #expect(try await send(Compact(number: 1), as: New.self).got == [New(number: 1)])
    #expect(try await send(Compact(number: 1), as: Strict.self).counts.undecodable == 1)
  }
}
