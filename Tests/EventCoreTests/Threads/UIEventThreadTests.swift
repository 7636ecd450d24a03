// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("UIEventThread: callbacks on the MainActor")
struct UIEventThreadTests {
  final class StatusBar: UIEventThread, @unchecked Sendable {
    // Constants of Sendable types.
    let token: Lifetime.Token
    let log: Log<String>

    init(_ token: Lifetime.Token, _ log: Log<String>, on central: EventCentral) {
      (self.token, self.log) = (token, log)
      super.init(on: central)
    }

    @available(*, unavailable, message: "needs the test's objects")
    required init() { preconditionFailure("needs the test's objects") }

    override func registerEventListeners() {
      addEventCallback(StatusBar.onPing)
      addEventCallback(StatusBar.onTimedPing)
      addEventCallback(StatusBar.onPong)
    }

    @MainActor func onPing(_ event: Ping) {
      MainActor.preconditionIsolated()
      log.append("ping \(event.number)")
    }

    @MainActor func onTimedPing(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {
      MainActor.preconditionIsolated()
      log.append("\(priority) ping \(event.number)")
    }

    func onPong(_ event: Pong) {
      MainActor.preconditionIsolated()
      log.append("pong \(event.number)")
    }
  }

  @Test("D2, D9: callbacks run on the MainActor in order, and the thread frees itself", arguments: cores)
  func onTheMainActor(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (lifetime, log) = (Lifetime(), Log<String>())
      var bar: StatusBar? = StatusBar(lifetime.token(), log, on: central)
      for number in 0..<200 {
        Ping(number: number).queue(on: central)
        Pong(number: number).queue(on: central)
      }
      let expected = (0..<200).flatMap { ["ping \($0)", "normal ping \($0)", "pong \($0)"] }
      #expect(log.entries(atLeast: 600) == expected)
      #expect(waitUntil { bar!.statistics == .init(delivered: 400, skipped: 0, cancelled: 0) })
      bar = nil
      #expect(lifetime.waitUntilNone())
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test("D1, D10: the most urgent event is first, and cancel counts what waits", arguments: cores)
  func urgentAndCancelled(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (lifetime, log) = (Lifetime(), Log<String>())
      let bar = StatusBar(lifetime.token(), log, on: central)
      let payloads = Lifetime()
      bar.addEventCallback { (_: Carrying) in log.append("carrying") }
      // The main queue stands still for as long as the test dispatches.
      let (entered, leave) = (Gate(), Gate())
      DispatchQueue.main.async {
        entered.open()
        leave.pass()
      }
      entered.pass()
      Pong(number: 1).queue(priority: .low, on: central)
      Pong(number: 2).queue(on: central)
      Pong(number: 3).stack(priority: .lowest, on: central)
      Pong(number: 4).queue(priority: .highest, on: central)
      #expect(bar.eventCount == 4)
      leave.open()
      #expect(log.entries(atLeast: 4) == ["pong 3", "pong 4", "pong 2", "pong 1"])
      DispatchQueue.main.async {
        entered.open()
        leave.pass()
      }
      entered.pass()
      for _ in 0..<10 { Carrying(token: payloads.token()).queue(on: central) }
      bar.cancel()
      // The events are freed although the main queue stands still.
      #expect(payloads.alive == 0)
      #expect(bar.statistics.cancelled == 10)
      bar.join()
      leave.open()
      #expect(log.entries.count == 4)
    }
  }

  @Test("a job of the main queue handles about 64 events at most, also if more come at its end", arguments: cores)
  func jobs(core: EventCentral.Core) async {
    final class AtEnd: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
      deinit { body() }
    }
    await offThePool {
      let central = EventCentral(core: core)
      let log = Log<Int>()
      let bar = UIEventThread(on: central)
      // Freed after the job has looked whether anything waits, since another handler's end removes it.
      @Sendable func dispatchMore() { for number in 64..<128 { Ping(number: number).queue(on: central) } }
      let last = bar.addEventCallback { [more = AtEnd(dispatchMore)] (_: Pong) in
        withExtendedLifetime(more) {}
      }
      let first = bar.addEventCallback { [removal = AtEnd { last.remove() }] (_: Pong) in
        withExtendedLifetime(removal) {}
      }
      bar.addEventCallback { (ping: Ping) in
        log.append(ping.number)
        guard ping.number == 63 else { return }
        first.remove()
        DispatchQueue.main.async { log.append(-1) }
      }
      // The main queue stands still for as long as the test dispatches.
      let (entered, leave) = (Gate(), Gate())
      DispatchQueue.main.async {
        entered.open()
        leave.pass()
      }
      entered.pass()
      for number in 0..<64 { Ping(number: number).queue(on: central) }
      leave.open()
      let entries = log.entries(atLeast: 129)
      #expect(entries.filter { $0 >= 0 } == Array(0..<128))
      #expect(entries.prefix { $0 >= 0 }.count <= 65)
    }
  }

  @Test("D10: drain handles what waits, also on the main thread itself", arguments: cores)
  func drains(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (lifetime, log) = (Lifetime(), Log<String>())
    await offThePool {
      let bar = StatusBar(lifetime.token(), log, on: central)
      for number in 0..<300 { Pong(number: number).queue(on: central) }
      #expect(bar.drain(until: .now() + .seconds(60)))
      #expect(log.take() == (0..<300).map { "pong \($0)" })
    }
    await MainActor.run {
      let bar = StatusBar(lifetime.token(), log, on: central)
      for number in 0..<300 { Pong(number: number).queue(on: central) }
      #expect(bar.drain())
      #expect(log.take() == (0..<300).map { "pong \($0)" })
      bar.join()
      let late = StatusBar(lifetime.token(), log, on: central)
      Pong().queue(on: central)
      #expect(!late.drain(until: .now()))
      #expect(late.statistics.cancelled == 1)
    }
    await offThePool { #expect(lifetime.waitUntilNone()) }
  }

  @Test("D10: drain on the main thread begins no callback after its deadline", arguments: cores)
  @MainActor
  func drainsInTime(core: EventCentral.Core) {
    for clock in [nil, ManualClock()] {
      let central = clock.map { EventCentral(core: core, clock: $0) } ?? EventCentral(core: core)
      let deadline = central.now + .milliseconds(50)
      let bar = UIEventThread(on: central)
      bar.addEventCallback { (_: Ping) in
        // The first callback lasts until the deadline.
        clock?.advance(by: .milliseconds(50))
        while central.now < deadline {}
      }
      for number in 0..<200 { Ping(number: number).queue(on: central) }
      #expect(!bar.drain(until: deadline))
      // None if the machine was slow: the deadline had passed before.
      #expect(bar.statistics.delivered <= 1)
      #expect(bar.statistics.delivered + bar.statistics.cancelled == 200)
    }
  }
}
