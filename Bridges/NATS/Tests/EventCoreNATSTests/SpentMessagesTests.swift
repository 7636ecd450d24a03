// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@testable import EventCoreNATS
import Testing

@Suite struct SpentMessagesTests {
  private static func message(of bytes: Int) -> OpaquePointer {
    var message: OpaquePointer?
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
}
