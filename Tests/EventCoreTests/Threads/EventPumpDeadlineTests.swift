// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("EventPump: what begins before a deadline")
struct EventPumpDeadlineTests {
  /// How many events may begin although the deadline has passed since the look that let them begin: the system may take
  /// the thread away between the two.
  private static let mostLate = 1

  @Test("Handlers of some microseconds all begin before the deadline", arguments: cores)
  func steady(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    // For how many handlers there is time: looks at the clock may be regular.
    for count in 20..<40 {
      let pump = EventPump(on: central)
      let length = 2_000 as UInt64
      let deadline = central.now.uptimeNanoseconds + UInt64(count) * length
      var late = 0
      pump.addEventCallback { (_: Ping) in
        let now = central.now.uptimeNanoseconds
        if now >= deadline { late += 1 }
        while central.now.uptimeNanoseconds < now + length {}
      }
      for number in 0..<200 { pump.queueEvent(Ping(number: number)) }
      let report = pump.run(until: DispatchTime(uptimeNanoseconds: deadline))
      #expect(late <= Self.mostLate)
      #expect(report.handled <= count + Self.mostLate)
      #expect(report.waiting == 200 - report.handled)
    }
  }

  @Test("A handler that turns slow is followed by no more than came before, and by 127 at most", arguments: cores)
  func sudden(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    for slow in Array(0..<100) + Array(stride(from: 100, to: 400, by: 13)) {
      let pump = EventPump(on: central)
      let game = EventPumpTests.Game()
      let deadline = DispatchTime(uptimeNanoseconds: central.now.uptimeNanoseconds + 4_000_000)
      pump.addEventCallback { (ping: Ping) in
        game.seen.append(ping.number)
        if ping.number == slow { while central.now < deadline {} }
      }
      for number in 0..<600 { pump.queueEvent(Ping(number: number)) }
      let report = pump.run(until: deadline)
      #expect(report.handled == game.seen.count)
      #expect(report.waiting == 600 - report.handled)
      let after = report.handled - slow - 1
      #expect(after <= min(slow, 127), "after \(slow)")
      pump.run()
      #expect(game.seen == Array(0..<600))
    }
  }

  private struct Path: Eventable { var number: Int }

  @Test("The first slow handler of another type is followed by none", arguments: cores)
  func suddenOfAnotherType(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    for short in stride(from: 1, to: 400, by: 13) {
      let pump = EventPump(on: central)
      let game = EventPumpTests.Game()
      let deadline = DispatchTime(uptimeNanoseconds: central.now.uptimeNanoseconds + 4_000_000)
      pump.addEventCallback { (ping: Ping) in game.seen.append(ping.number) }
      pump.addEventCallback { (path: Path) in
        game.seen.append(path.number)
        while central.now < deadline {}
      }
      for number in 0..<short { pump.queueEvent(Ping(number: number)) }
      for number in short..<600 { pump.queueEvent(Path(number: number)) }
      let report = pump.run(until: deadline)
      #expect(report.handled <= short + 1)
      #expect(report.waiting == 600 - report.handled)
      pump.run()
      #expect(game.seen == Array(0..<600))
    }
  }

  @Test("Of slow handlers between short ones one begins after the deadline at most, each time", arguments: cores)
  func slowInTurn(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    var (late, handled, deadline) = (0, 0, DispatchTime(uptimeNanoseconds: 0))
    pump.addEventCallback { (_: Ping) in }
    pump.addEventCallback { (_: Path) in
      let now = central.now.uptimeNanoseconds
      if now >= deadline.uptimeNanoseconds { late += 1 }
      while central.now.uptimeNanoseconds < now + 20_000 {}
    }
    for number in 0..<4_000 {
      if number % 51 == 50 { pump.queueEvent(Path(number: number)) } else { pump.queueEvent(Ping(number: number)) }
    }
    // Where only short ones have come for a while.
    for number in 0..<200 { pump.queueEvent(Path(number: number)) }
    while handled < 4_200 {
      late = 0
      deadline = DispatchTime(uptimeNanoseconds: central.now.uptimeNanoseconds + 300_000)
      handled += pump.run(until: deadline).handled
      #expect(late <= 1)
    }
  }

  @Test("A long stretch of the locking core is over before the deadline if each handler takes 8 µs")
  func nearTheDeadline() {
    for fit in 1..<256 as Range<UInt64> {
      // It begins with one event, and becomes as long as it may within some microseconds.
      let began = monotonicNanoseconds()
      var stretch = LockingStretch(limit: 10_000, until: began + 8_192 * fit)
      var handled = 0
      while stretch.mayBegin() {
        #expect(stretch.left <= max(32, Int(fit)) && stretch.left <= 128)
        for _ in 0..<stretch.left {
          stretch.didHandle()
          handled += 1
        }
        if handled > 2_000 { break }
      }
    }
  }
}
