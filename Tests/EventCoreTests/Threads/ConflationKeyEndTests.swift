// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("D6: keys of events that do something when they end")
struct ConflationKeyEndTests {
  final class Key: Hashable, Sendable {
    private let whenEnded: @Sendable () -> Void

    init(whenEnded: @escaping @Sendable () -> Void) { self.whenEnded = whenEnded }
    deinit { whenEnded() }

    static func == (one: Key, other: Key) -> Bool { one === other }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
  }
  struct Keyed: Conflatable { let conflationKey: Key }
  struct Other: Eventable {}

  @Test("a key that ends with its handler removes another handler of the pump", arguments: cores)
  func removal(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let other = pump.addEventCallback { (_: Other) in }
    let handle = pump.addEventCallback({ (_: Keyed) in }, interestedIn: .latestPerKey)
    let (isRemoved, hasEnded) = (Gate(), Gate())
    Keyed(
      conflationKey: Key {
        other.remove()
        hasEnded.open()
      }
    ).queue(on: central)
    #expect(pump.run().handled == 1)
    runThread {
      handle.remove()
      isRemoved.open()
    }
    isRemoved.pass()
    // The lock-free core keeps it for as long as this thread remembers the route.
    guard core == .locking else { return }
    hasEnded.pass()
    #expect(Other().queue(on: central) == 0)
  }

  @Test("a key that ends with its thread removes another handler of it", arguments: cores)
  func end(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let other = thread.addEventCallback { (_: Other) in }
    thread.addEventCallback({ (_: Keyed) in }, interestedIn: .latestPerKey)
    let hasEnded = Gate()
    Keyed(
      conflationKey: Key {
        other.remove()
        hasEnded.open()
      }
    ).queue(on: central)
    thread.drain()
    if core == .locking { hasEnded.pass() }
  }
}
