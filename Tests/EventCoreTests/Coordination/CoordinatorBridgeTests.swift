// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("emitEvents(of:from:) is a bridge from a central to coordinators")
struct CoordinatorBridgeTests {
  /// The actor on which a test uses its coordinators.
  private actor Home {
    let journal = Journal()
    var top: Desk?
    var shop: Desk?

    /// Makes the coordinators and a bridge, and tells where it runs. The last event opens `last`.
    func open(_ central: EventCentral, last: Gate = Gate(), isTopOnly: Bool = false) -> String {
      let top = Desk("top", journal)
      let shop = Desk("shop", journal)
      top.start()
      top.startChild(shop)
      self.top = top
      self.shop = shop
      _ = journal.take()
      top.answer = { [journal] event in
        self.preconditionIsolated()
        journal.entries.append("\(event)")
        if event as? Teams == .didSelect(20) { last.open() }
        return .handled
      }
      return "\((isTopOnly ? top : shop).emitEvents(of: Teams.self, from: central).executesOn)"
    }

    func entries() -> [String] { journal.entries }

    func close() { (top, shop) = (nil, nil) }
  }

  @Test(
    "D1, D2: an event from any thread is offered to the coordinators on their actor, in order",
    arguments: cores)
  func onActor(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let home = Home()
    let last = Gate()
    #expect(await home.open(central, last: last) == "actor")
    await offThePool {
      for number in 1...20 { #expect(Teams.didSelect(number).queue(on: central) == 1) }
      last.pass()
    }
    #expect(await home.entries() == (1...20).flatMap { ["shop", "top", "didSelect(\($0))"] })
    // Events of another type do not come (D11).
    #expect(Drivers.didRetire.queue(on: central) == 0)
    await home.close()
  }

  @Test("D9: a bridge ends with its coordinator, which it does not retain", arguments: cores)
  func endsWithTheCoordinator(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let home = Home()
    _ = await home.open(central, isTopOnly: true)
    await home.close()
    central.listener.sweep()
    #expect(central.listener.listenerCount == 0)
    #expect(Teams.didSelect(1).queue(on: central) == 0)
    #expect(await home.entries() == [])
  }

  @Test("D4: an event that a full receiver refuses is unhandled", arguments: cores)
  @MainActor
  func refused(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central, mailbox: .bounded(1, whenFull: .refuse))
    pump.addEventCallback { (_: Teams) in }
    let desk = Desk("desk", Journal())
    desk.start()
    desk.dispatchUnhandled(to: central)
    #expect((1...3).map { desk.emitEvent(Teams.didSelect($0)) } == [.handled, .unhandled, .unhandled])
  }

  @Test("a bridge that is made on the MainActor runs there until its handle is removed", arguments: cores)
  @MainActor
  func onMainActor(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let journal = Journal()
    let desk = Desk("desk", journal)
    let asked = Gate()
    desk.answer = { _ in
      MainActor.preconditionIsolated()
      asked.open()
      return .handled
    }
    let handle = desk.emitEvents(of: Teams.self, from: central)
    #expect("\(handle.executesOn)" == "mainQueue")
    await offThePool {
      Teams.didSelect(1).queue(on: central)
      asked.pass()
    }
    #expect(journal.take() == ["desk"])
    #expect(handle.remove())
    #expect(Teams.didSelect(2).queue(on: central) == 0)
  }

  @Test("a bridge that a handler of an event thread makes runs on that thread", arguments: cores)
  func inAnEventThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let (own, asked, places) = (Log<UInt>(), Log<UInt>(), Log<String>())
      thread.addEventCallback { (_: Pong) in
        own.append(currentThread())
        let desk = Desk("desk", Journal())
        let handle = desk.emitEvents(of: Teams.self, from: central, isolation: nil)
        places.append("\(handle.executesOn)")
        desk.answer = { _ in
          asked.append(currentThread())
          // Until it is asked, the coordinator is held by this closure alone.
          desk.answer = { _ in .pass }
          return .handled
        }
      }
      thread.queueEvent(Pong())
      #expect(places.entries(atLeast: 1) == ["eventThread"])
      #expect(Teams.didSelect(1).queue(on: central) == 1)
      #expect(asked.entries(atLeast: 1) == own.entries)
      #expect(thread.drain())
    }
  }

  @Test("D12: making a bridge in a task's handler traps, since each listener has a task of its own")
  func inATask() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let central = EventCentral()
      Pong.addListener(
        nil,
        { (_: Pong) in
          Desk("desk", Journal()).emitEvents(of: Teams.self, from: central, isolation: nil)
        }, executeOn: .taskThread, on: central)
      Pong().queue(on: central)
      await offThePool { Gate().pass() }
    }
    expectMessage(result, "emitEvents(of:from:) was called on a thread that is none, for Teams")
  }

  @Test("D12: making a bridge on a thread that is no execution context traps")
  func onNoPlace() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let done = DispatchSemaphore(value: 0)
      runThread {
        Desk("desk", Journal()).emitEvents(of: Teams.self, isolation: nil)
        done.signal()
      }
      done.wait()
    }
    expectMessage(
      result,
      "emitEvents(of:from:) was called on a thread that is none, for Teams: call it on the main")
  }
}
