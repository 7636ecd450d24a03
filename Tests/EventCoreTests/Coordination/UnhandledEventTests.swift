// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("An event that reaches the top unhandled can go on")
struct UnhandledEventTests {
  let event = Teams.didSelect(4)

  @Test("the closure of the top coordinator is asked last, and decides")
  func closure() {
    let shop = Shop()
    var answer = EventInterception.pass
    shop.app.unhandledEvents = { [journal = shop.journal] event in
      journal.entries.append("unhandled \(event)")
      return answer
    }
    #expect(shop.button.emitEvent(event) == .unhandled)
    #expect(
      shop.journal.take() == ["table", "screen", "shop", "app", "unhandled didSelect(4)"])
    answer = .handled
    #expect(shop.button.emitEvent(event) == .handled)
    _ = shop.journal.take()
    shop.app.answer = { _ in .handled }
    #expect(shop.button.emitEvent(event) == .handled)
    #expect(shop.journal.take() == ["table", "screen", "shop", "app"])
    // The top itself emits.
    #expect(shop.app.emitEvent(event) == .handled)
    #expect(shop.journal.take() == ["unhandled didSelect(4)"])
  }

  @Test("a closure for unhandled events is asked only at the top, unless that is stopped")
  func onlyAtTheTop() {
    let shop = Shop()
    var asked = 0
    shop.shop.unhandledEvents = { _ in
      asked += 1
      return .handled
    }
    #expect(shop.screen.emitEvent(event) == .unhandled)
    shop.shop.removeFromParent()
    #expect(shop.screen.emitEvent(event) == .handled)
    #expect(asked == 1)
    shop.shop.answer = { [unowned desk = shop.shop] _ in
      desk.stop()
      return .pass
    }
    #expect(shop.screen.emitEvent(event) == .unhandled)
    #expect(asked == 1)
  }

  @Test("an event that goes on to a central is handled if somebody receives its type there", arguments: cores)
  func central(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let shop = Shop()
    shop.app.dispatchUnhandled(to: central, priority: .high)
    #expect(shop.button.emitEvent(event) == .unhandled)
    let thread = EventThread(on: central)
    let log = Log<Teams>()
    let priorities = Log<EventPriority>()
    thread.addEventCallback { (event: Teams, priority, _) in
      log.append(event)
      priorities.append(priority)
    }
    #expect(shop.button.emitEvent(event) == .handled)
    #expect(shop.button.emitEvent(Drivers.didRetire) == .unhandled)
    // The event keeps its exact type, however it was emitted (D11).
    let any: any CoordinateEvents = Teams.setFavorite("Porto")
    #expect(shop.button.emitEvent(any) == .handled)
    #expect(thread.drain())
    #expect(log.entries == [event, .setFavorite("Porto")])
    #expect(priorities.entries == [.high, .high])
  }

  @Test("a central that only keeps the newest event of a type does not handle it", arguments: cores)
  func kept(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let shop = Shop()
    shop.app.dispatchUnhandled(to: central)
    Teams.keepNewest(on: central)
    #expect(shop.button.emitEvent(event) == .unhandled)
    #expect(Teams.newest(on: central) == event)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Teams) in }
    #expect(shop.button.emitEvent(event) == .handled)
    #expect(thread.drain())
    #expect(shop.button.emitEvent(event) == .unhandled)
  }

  @Test("an event that goes on into a tree is handled if a handler there consumes it", arguments: cores)
  func tree(core: EventCentral.Core) {
    let shop = Shop()
    let world = EventNode(core: core)
    let hall = EventNode(parent: world)
    let desk = EventNode(parent: hall)
    let journal = Log<String>()
    desk.addHandler { (event: Teams) in journal.append("desk \(event)") }
    hall.addHandler(.onRaise) { (event: Teams) in journal.append("hall \(event)") }
    shop.app.raiseUnhandled(at: hall)
    #expect(shop.button.emitEvent(event) == .unhandled)
    #expect(journal.take() == ["hall didSelect(4)", "desk didSelect(4)"])
    // The event keeps its exact type, however it was emitted (D11).
    let any: any CoordinateEvents = Teams.setFavorite("Porto")
    #expect(shop.button.emitEvent(any) == .unhandled)
    #expect(journal.take() == ["hall setFavorite(\"Porto\")", "desk setFavorite(\"Porto\")"])
    world.addHandler([.onRaise, .consumeEvent]) { (_: Teams) in journal.append("world") }
    #expect(shop.button.emitEvent(event) == .handled)
    #expect(journal.take() == ["hall didSelect(4)", "world"])
    shop.app.raiseUnhandled(at: hall, scope: .propagating)
    #expect(shop.button.emitEvent(event) == .unhandled)
    #expect(journal.take() == ["desk didSelect(4)"])
    // An event that a coordinator handles does not get there.
    shop.app.answer = { _ in .handled }
    #expect(shop.button.emitEvent(event) == .handled)
    #expect(journal.take() == [])
  }

  @Test(
    "D9: the tree that events go on into lives as long as the coordinator refers to it",
    arguments: cores)
  func treeLives(core: EventCentral.Core) {
    let top = Coordinator()
    weak var node: EventNode?
    do {
      let made = EventNode(core: core)
      node = made
      top.raiseUnhandled(at: made)
    }
    #expect(node != nil)
    top.unhandledEvents = nil
    #expect(node == nil)
  }

  @Test("a coordinate event can be dispatched like any other", arguments: cores)
  func dispatched(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Teams>()
    thread.addEventCallback { (event: Teams) in log.append(event) }
    #expect(event.queue(on: central) == 1)
    #expect(thread.drain())
    #expect(log.entries == [event])
  }
}
