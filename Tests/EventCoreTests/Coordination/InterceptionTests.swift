// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Testing

@Suite("Interceptors stop an event, or let it pass")
struct InterceptionTests {
  let event = Teams.setFavorite("Benfica")

  @Test(
    "whoever handles an event is the last one that is asked", arguments: ["table", "screen", "shop", "app"])
  func everyPlace(place: String) {
    let shop = Shop()
    switch place {
    case "table": shop.table.answer = { _ in .handled }
    case "screen": shop.screen.stops = true
    case "shop": shop.shop.answer = { _ in .handled }
    default: shop.app.answer = { _ in .handled }
    }
    #expect(shop.button.emitEvent(event) == .handled)
    let all = ["table", "screen", "shop", "app"]
    #expect(shop.journal.take() == Array(all[...all.firstIndex(of: place)!]))
  }

  @Test("in the Bool form true stops an event, and false lets it pass")
  func bool() {
    final class Stopping: Coordinator {
      var answer = true
      var events: [Teams] = []
      override func interceptEvent(_ event: CoordinateEvents) -> Bool {
        if let event = event as? Teams { events.append(event) }
        return answer
      }
    }
    let (low, high) = (Stopping(), Stopping())
    high.addChild(low)
    let screen = Screen()
    low.rootResponder = screen
    #expect(screen.emitEvent(event) == .handled)
    #expect(low.events == [event])
    #expect(high.events == [])
    low.answer = false
    #expect(screen.emitEvent(event) == .handled)
    #expect(low.events == [event, event])
    #expect(high.events == [event])
    high.answer = false
    #expect(screen.emitEvent(event) == .unhandled)
  }

  @Test("a responder with neither form lets events pass; one with both is asked in the enum form")
  func forms() {
    final class Neither: Panel, EventIntercepting {}
    final class Both: Panel, EventIntercepting {
      func interceptEvent(_ event: CoordinateEvents) -> Bool { false }
      func intercept(_ event: any CoordinateEvents) -> EventInterception { .handled }
    }
    let (panel, neither, both) = (Panel(), Neither(), Both())
    panel.above = neither
    #expect(panel.emitEvent(event) == .unhandled)
    neither.above = both
    #expect(panel.emitEvent(event) == .handled)
  }

  @Test("D11: typed interceptors are asked by exact type, in order and before the override")
  func typed() {
    let shop = Shop()
    var answer = EventInterception.pass
    shop.shop.intercept(Teams.self) { [journal = shop.journal] event in
      journal.entries.append("first \(event)")
      return .pass
    }
    shop.shop.intercept(Drivers.self) { [journal = shop.journal] _ in
      journal.entries.append("drivers")
      return .pass
    }
    shop.shop.intercept { [journal = shop.journal] (event: Teams) in
      guard case .didSelect(let number) = event else { return .pass }
      journal.entries.append("second \(number)")
      return answer
    }
    let selected = Teams.didSelect(7)
    #expect(shop.screen.emitEvent(selected) == .unhandled)
    #expect(shop.journal.take() == ["first didSelect(7)", "second 7", "shop", "app"])
    answer = .handled
    #expect(shop.screen.emitEvent(selected) == .handled)
    #expect(shop.journal.take() == ["first didSelect(7)", "second 7"])
    #expect(shop.screen.emitEvent(Drivers.didRetire) == .unhandled)
    #expect(shop.journal.take() == ["drivers", "shop", "app"])
  }

  @Test("a typed interceptor gets the event, whatever its size and what it holds")
  func payloads() {
    let coordinator = Coordinator()
    let screen = Screen()
    coordinator.rootResponder = screen
    var got: [Standings] = []
    coordinator.intercept { (event: Standings) in
      got.append(event)
      return .handled
    }
    let standings = Standings(points: [25, 18, 15], season: 2026, round: 21, leader: "nobody")
    #expect(screen.emitEvent(standings) == .handled)
    #expect(got == [standings])
  }

  @Test("a method is registered without its object, and retains nothing")
  func method() {
    final class Favourites: Coordinator {
      var names: [String] = []
      override init(rootResponder: (any Coordinated)? = nil) {
        super.init(rootResponder: rootResponder)
        intercept(Favourites.onTeams)
      }
      func onTeams(_ event: Teams) -> EventInterception {
        guard case .setFavorite(let name) = event else { return .pass }
        names.append(name)
        return .handled
      }
    }
    let screen = Screen()
    weak var gone: Favourites?
    do {
      let favourites = Favourites(rootResponder: screen)
      gone = favourites
      #expect(screen.emitEvent(event) == .handled)
      #expect(screen.emitEvent(Teams.didSelect(1)) == .unhandled)
      #expect(favourites.names == ["Benfica"])
    }
    #expect(gone == nil)
    #expect(screen.emitEvent(event) == .unhandled)
  }

  @Test("D6: after remove() an interceptor is not asked, and what it held is freed")
  func removal() {
    let coordinator = Coordinator()
    let screen = Screen()
    coordinator.rootResponder = screen
    var token: Journal? = Journal()
    weak let weakToken = token
    let handle = coordinator.intercept(Teams.self) { [token] _ in
      token == nil ? .pass : .handled
    }
    token = nil
    #expect(screen.emitEvent(event) == .handled)
    #expect(handle.isActive)
    #expect(handle.remove())
    #expect(weakToken == nil)
    #expect(!handle.isActive)
    #expect(!handle.remove())
    #expect(screen.emitEvent(event) == .unhandled)
  }

  @Test("a handle may outlive its coordinator and is inactive then")
  func handleOutlives() {
    let handle = Coordinator().intercept { (_: Teams) in .handled }
    #expect(!handle.isActive)
    #expect(handle.remove())
  }

  @Test("D7: an interceptor may emit, and that event is through before the first one goes on")
  func nestedEmission() {
    let shop = Shop()
    shop.shop.intercept { [unowned screen = shop.screen, journal = shop.journal] (_: Teams) in
      #expect(screen.emitEvent(Drivers.didRetire) == .unhandled)
      journal.entries.append("back")
      return .pass
    }
    shop.screen.emitEvent(event)
    #expect(shop.journal.take() == ["shop", "app", "back", "shop", "app"])
  }

  @Test("a pattern with a case finds it in the event")
  func pattern() {
    let shop = Shop()
    var names: [String] = []
    shop.app.answer = { event in
      guard case Teams.setFavorite(let name) = event else { return .pass }
      names.append(name)
      return .handled
    }
    #expect(shop.button.emitEvent(event) == .handled)
    #expect(shop.button.emitEvent(Teams.didSelect(3)) == .unhandled)
    #expect(shop.button.emitEvent(Drivers.didRetire) == .unhandled)
    #expect(names == ["Benfica"])
  }
}
