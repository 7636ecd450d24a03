// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
@testable import EventCoreNATS
import Testing

private struct Versioned: RemoteEvent {
  static let subject = "tests.header"
  static let remoteName = "a name of several words"
  static let version = 12
}

@Suite struct MessageHeaderTests {
  @Test("what a bridge says of an event is read as it was written", arguments: [true, false])
  func roundTrip(isCBOR: Bool) throws {
    let coding: RemoteCoding<Versioned> = isCBOR ? .cbor : .json
    let writer = HeaderWriter(Versioned.self, coding, sender: "8c1f")
    for method in [EventDispatchMethod.queue, .stack] {
      for priority in [EventPriority.lowest, .low, .normal, .high, .highest] {
        for time in [0, 7, -7, 1_764_060_000_000_000_000, Int64.max, .min] {
          try writer.line(method, priority, time: time).withCString {
            let header = try #require(MessageHeader(line: $0))
            #expect(header.method == method && header.priority == priority && header.time == time)
            #expect(header.version == 12 && header.sender.isText("8c1f") && header.type.isText(Versioned.remoteName))
            #expect(isCBOR ? header.form?.isText("cbor") == true : header.form == nil)
          }
        }
      }
    }
  }

  @Test(
    "a line of another form is none",
    arguments: [
      "", " ", "queue", "queue normal 1 1 s", "queue normal 1 1 s ", " queue normal 1 1 s T", "queue  normal 1 1 s T",
      "Queue normal 1 1 s T", "queues normal 1 1 s T", "queue norma 1 1 s T", "queue normal x 1 s T",
      "queue normal 1x 1 s T", "queue normal - 1 s T", "queue normal -- 1 s T", "queue normal 1- 1 s T",
      "queue normal 9223372036854775808 1 s T", "queue normal 99999999999999999999 1 s T", "queue normal 1 -1 s T",
      "queue normal 1 /cbor s T", "queue normal 1 x/cbor s T", "queue normal 1 1  T",
      "queue normal 1 18446744073709551617 s T", "queue normal -9223372036854775809 1 s T",
    ])
  func malformed(line: String) {
    line.withCString { #expect(MessageHeader(line: $0) == nil) }
  }
}
