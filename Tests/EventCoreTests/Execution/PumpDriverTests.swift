// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization
import Testing

@testable import EventCore

@Suite("A pump and its driver")
struct PumpDriverTests {
  private final class CountingDriver: PumpDriver {
    let canRun = true
    let scheduled = Atomic<Int>(0)
    let finished = Atomic<Int>(0)

    func schedule(_ pump: ConsumerPump) { scheduled.add(1, ordering: .relaxed) }
    func finish() { finished.add(1, ordering: .relaxed) }
  }

  @Test("D9: a driver whose consumer went before its job came is told that it is over")
  func consumerIsGone() {
    let driver = CountingDriver()
    let pump = ConsumerPump(driver, batch: 1)
    // No consumer: it was the leaving user's, and the last reference of it went with that.
    pump.wake()
    #expect(driver.scheduled.load(ordering: .relaxed) == 1)
    #expect(pump.perform())
    #expect(driver.finished.load(ordering: .relaxed) == 1)
    #expect(!pump.perform())
  }
}
