// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Of this process, in bytes; 0 on systems that do not tell it so.
private var addressSpace: Int {
  let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ").first
  return (pages.flatMap { Int($0) } ?? 0) * Int(getpagesize())
}

@Suite struct SpentSubscriptionsTests {
  @Test("subscriptions that end while messages come for them leave neither threads nor memory behind")
  func ended() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    // Some of which the client drops, and tells.
    let receiver = try await NATSBridge.to(server, on: world) { $0.inbox = 1 }
    let raw = try RawClient(server)
    let before = addressSpace
    // With a factor of 50 these are more threads than a process may have.
    for number in 0..<(700 * stressFactor) {
      let subscription = try receiver.subscribe(Reading.self)
      if number % 8 == 0 {
        try await receiver.settle()
        for _ in 0..<10 { raw.publish(Reading.subject, Data(#"{"number": 1, "text": ""}"#.utf8)) }
        raw.flush()
      }
      subscription.remove()
    }
    #expect(await eventually(within: .seconds(20)) { receiver.link.retiredCount < Link.retiredTogether })
    // Of 700 stacks it would be 5 GB.
    #expect(await eventually { addressSpace < before + 2_000_000_000 })
    // The client is as it was.
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    raw.publish(Reading.subject, Data(#"{"number": 2, "text": ""}"#.utf8))
    raw.flush()
    #expect(await eventually { log.entries.last == 2 })
    await receiver.drain()
  }

  @Test("a registration that was removed and is kept does not keep its subscription")
  func kept() async throws {
    let server = try ServerProcess()
    let receiver = try await NATSBridge.to(server, on: EventCentral()) { $0.inbox = 1 }
    let all = try (0..<100).map { _ in try receiver.subscribe(Reading.self) }
    try await receiver.settle()
    #expect(receiver.link.subscriptions.withLock { $0.known.count } == 100)
    // They are given back by the last that uses them.
    async let counted: Void = blocking { for _ in 0..<100 { _ = receiver.counts } }
    for registration in all { #expect(registration.remove()) }
    await counted
    #expect(
      await eventually(within: .seconds(20)) {
        receiver.link.subscriptions.withLock { $0.known.count } < Link.retiredTogether
      })
    #expect(all.allSatisfy { !$0.isActive && !$0.remove() && $0.overrun == 0 })
    #expect(await receiver.drain())
  }
}
