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

  @Test("D9: a driver whose consumer ends before a job runs is told to finish")
  func consumerIsGone() {
    let driver = CountingDriver()
    let pump = ConsumerPump(driver, batch: 1)
    // The pump has no consumer, as after the last reference to the consumer went with its last user.
    pump.wake()
    #expect(driver.scheduled.load(ordering: .relaxed) == 1)
    #expect(pump.perform())
    #expect(driver.finished.load(ordering: .relaxed) == 1)
    #expect(!pump.perform())
  }
}
