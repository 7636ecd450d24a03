// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// The receiver takes less than comes, and the client drops the rest.
extension LossTests {
  @Test("a receiver that is too slow: the client drops, and both counts and status tell", arguments: [nil, "workers"])
  func overrun(group: String?) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 10 }
    let slow = Log<Int>()
    NATSStatus.addListener(
      nil,
      { status in
        if case .slowConsumer(let subject, let dropped) = status.change, subject == Reading.subject {
          slow.append(dropped)
        }
      }, executeOn: .listenerThread, on: there)
    // The thread of the client waits for a receiver that is full.
    let gate = DispatchSemaphore(value: 0)
    let thread = EventThread(on: there, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(600))))
    let log = Log<Int>()
    thread.addEventCallback { (event: Reading) in
      gate.wait()
      log.append(event.number)
    }
    if let group {
      try receiver.subscribe(Reading.self, group: group)
    } else {
      try receiver.subscribe(Reading.self)
    }
    try await receiver.settle()
    sender.publish(Reading.self)
    for number in 0..<1000 { Reading(number: number).queue(on: here) }
    #expect(await sender.drain())
    #expect(await eventually { receiver.counts.overrun > 900 && slow.count > 0 })
    for _ in 0..<1000 { gate.signal() }
    await receiver.drain()
    await thread.drain()
    let counts = receiver.counts
    #expect(counts.received + counts.overrun == 1000)
    #expect(log.count == counts.dispatched)
  }

  @Test("what the client drops while a bridge is drained is counted to the last message")
  func overrunDuringDrain() async throws {
    let (server, count) = (try ServerProcess(), 3_000)
    for round in 0..<20 {
      let (here, there) = (EventCentral(), EventCentral())
      let sender = try await NATSBridge.to(server, on: here) { $0.outbox = .unbounded }
      let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 1 }
      let log = Log<Int>()
      let thread = EventThread(on: there)
      thread.addEventCallback { (event: Reading) in log.append(event.number) }
      try receiver.subscribe(Reading.self)
      try await receiver.settle()
      sender.publish(Reading.self)
      for number in 0..<count { Reading(number: number).queue(on: here) }
      #expect(await sender.drain())
      // The server has all of them, and the receiver's client takes and drops what comes.
      await receiver.drain()
      await thread.drain()
      let counts = receiver.counts
      #expect(counts.received + counts.overrun == count, "round \(round)")
      #expect(counts.overrun > 0 && log.count == counts.dispatched)
    }
  }

  @Test("a message that alone is longer than all that may wait is accounted for, also as the last of a drain")
  func longLastMessage() async throws {
    let body = #"{"number": 1, "text": "\#(String(repeating: "x", count: 5_000))"}"#
    let server = try ScriptedServer { line in
      // The last message for the subscription that the client ends: the client hears next that nothing more will come.
      let words = line.split(separator: " ")
      return words.first == "UNSUB" ? "MSG \(Reading.subject) \(words[1]) \(body.utf8.count)\r\n\(body)\r\n" : nil
    }
    var options = NATSBridge.Options()
    options.inbox = 1
    let receiver = try await NATSBridge(.url(server.url), on: EventCentral(), options: options)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    #expect(await receiver.drain())
    let counts = receiver.counts
    #expect(counts.received + counts.overrun == 1)
  }
}
