// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
@testable import EventCoreNATS
import Testing

@Suite struct SpentMessagesTests {
  private static func message(of bytes: Int) -> OpaquePointer {
    var message: OpaquePointer?
    // The client frees a message on a thread that the first connection starts, or this.
    nats_Open(-1)
    let body = [CChar](repeating: 0, count: bytes)
    natsMsg_Create(&message, "tests.spent", nil, body, Int32(bytes))
    return message!
  }

  @Test("few messages wait to be destroyed, however many threads add them", arguments: [1, 4])
  func few(threads: Int) async {
    let spent = SpentMessages()
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<threads {
        group.addTask {
          (0..<1000).allSatisfy { _ in
            spent.add(Self.message(of: 8))
            return spent.count <= SpentMessages.most
          }
        }
      }
      for await wereFew in group { #expect(wereFew) }
    }
    // Each round of one more than may wait empties it.
    #expect(spent.count == threads * 1000 % (SpentMessages.most + 1))
    spent.add(Self.message(of: SpentMessages.mostBytes + 1))
  }

  @Test("long messages do not wait")
  func long() {
    let spent = SpentMessages()
    spent.add(Self.message(of: SpentMessages.mostBytes))
    #expect(spent.count == 1)
    spent.add(Self.message(of: 1))
    #expect(spent.count == 0)
  }

  @Test("those that wait are destroyed when nothing more is to come")
  func all() {
    let spent = SpentMessages()
    for _ in 0..<3 { spent.add(Self.message(of: 8)) }
    spent.destroyAll()
    #expect(spent.count == 0)
    spent.destroyAll()
  }

  @Test("none wait when the last bridge has ended, which may be kept", arguments: [true, false])
  func afterTheLast(drains: Bool) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let bridges = [try await NATSBridge.to(server, on: here), try await NATSBridge.to(server, on: there)]
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try bridges[1].subscribe(Reading.self)
    try await bridges[1].settle()
    bridges[0].publish(Reading.self)
    for number in 0..<5 {
      Reading(number: number).queue(on: here)
      #expect(await log.entries(atLeast: number + 1).count == number + 1)
    }
    for bridge in bridges {
      if drains { await bridge.drain() } else { bridge.close() }
    }
    #expect(await eventually(within: .seconds(20)) { SpentMessages.shared.count == 0 })
    withExtendedLifetime(bridges) {}
  }
}
