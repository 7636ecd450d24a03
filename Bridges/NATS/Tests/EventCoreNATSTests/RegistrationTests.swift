// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// What cannot be registered, and what a bridge that was closed registers.
@Suite struct RegistrationTests {
  @Test("a bridge whose name makes the first line too long for the server: the error names it")
  func longName() async throws {
    let server = try ServerProcess()
    let error = await #expect(throws: NATSBridgeError.self) {
      try await NATSBridge.to(server, on: EventCentral()) { $0.name = String(repeating: "x", count: 5000) }
    }
    let text = error?.description ?? ""
    #expect(text.contains("Options.name") && !text.contains("this server takes less"), "\(text)")
  }

  @Test("what is published on a bridge that was closed has ended", arguments: [false, true])
  func afterTheEnd(isDrained: Bool) async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    if isDrained { #expect(await bridge.drain()) } else { bridge.close() }
    for _ in 0..<2 {
      let registration = bridge.publish(Reading.self)
      #expect(!registration.isActive && !registration.remove())
    }
    #expect(Reading(number: 1).queue(on: world) == 0)
    let error = #expect(throws: NATSBridgeError.self) { try bridge.subscribe(Reading.self) }
    #expect(error?.reason == .closed && error?.description == NATSBridgeError.closed.description)
  }

  @Test(
    "a subject or a group that is none is an error that quotes it, and the next one is taken",
    arguments: ["", "a..b", ".a", "a.", "a\0b", "a b", "a.\t"])
  func subjects(subject: String) async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    for group in [nil, "workers"] {
      let error = #expect(throws: NATSBridgeError.self) {
        if let group {
          try bridge.subscribe(Reading.self, to: subject, group: group)
        } else {
          try bridge.subscribe(Reading.self, to: subject)
        }
      }
      let text = error?.description ?? ""
      #expect(text.contains("A subject is words") && text.contains(subject.debugDescription), "\(text)")
    }
    for pattern in ["a.*", "a.>", "a.*.b", ">", "a.\u{A0}.\u{301}b"] { try bridge.subscribe(Reading.self, to: pattern) }
    try await bridge.settle()
    #expect(bridge.isConnected)
    bridge.close()
  }

  @Test("a group has a name", arguments: ["", "two words", "a\0b"])
  func groups(group: String) async throws {
    let server = try ServerProcess()
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    let error = #expect(throws: NATSBridgeError.self) { try bridge.subscribe(Reading.self, group: group) }
    let text = error?.description ?? ""
    #expect(text.contains("The name of a group") && text.contains(group.debugDescription), "\(text)")
    try bridge.subscribe(Reading.self, group: "workers.a")
    try await bridge.settle()
    bridge.close()
  }
}
