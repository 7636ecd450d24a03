// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Testing

@Suite("An event goes up the responders, to their coordinator, and to its parents")
struct ChainTests {
  let event = Teams.setFavorite("Benfica")

  @Test("an event goes from a view to those above it, its coordinator and that one's parents")
  func fromView() {
    let shop = Shop()
    #expect(shop.button.emitEvent(event) == .unhandled)
    // The window is above the screen, but the screen leads to its coordinator.
    #expect(shop.journal.take() == ["table", "screen", "shop", "app"])
  }

  @Test("the emitter is asked first if the call includes it, and otherwise not at all")
  func includingEmitter() {
    let shop = Shop()
    shop.button.emitEvent(event, includingEmitter: true)
    #expect(shop.journal.take() == ["button", "table", "screen", "shop", "app"])
    shop.button.answer = { _ in .handled }
    #expect(shop.button.emitEvent(event) == .unhandled)
    #expect(shop.journal.take() == ["table", "screen", "shop", "app"])
    #expect(shop.button.emitEvent(event, includingEmitter: true) == .handled)
    #expect(shop.journal.take() == ["button"])
    // An emitter that does not intercept.
    shop.cell.emitEvent(event, includingEmitter: true)
    #expect(shop.journal.take() == ["table", "screen", "shop", "app"])
  }

  @Test("an event from a screen or from a coordinator goes up from there")
  func fromTheMiddle() {
    let shop = Shop()
    shop.screen.emitEvent(event)
    #expect(shop.journal.take() == ["shop", "app"])
    shop.screen.emitEvent(event, includingEmitter: true)
    #expect(shop.journal.take() == ["screen", "shop", "app"])
    shop.shop.emitEvent(event)
    #expect(shop.journal.take() == ["app"])
    shop.shop.emitEvent(event, includingEmitter: true)
    #expect(shop.journal.take() == ["shop", "app"])
    #expect(shop.app.emitEvent(event) == .unhandled)
    #expect(shop.journal.take() == [])
    shop.app.emitEvent(event, includingEmitter: true)
    #expect(shop.journal.take() == ["app"])
  }

  @Test("an event that nobody is above to handle is unhandled")
  func nobody() {
    #expect(Panel().emitEvent(event) == .unhandled)
    #expect(Panel().emitEvent(event, includingEmitter: true) == .unhandled)
    #expect(Screen().emitEvent(event) == .unhandled)
    #expect(Coordinator().emitEvent(event) == .unhandled)
    #expect(UnnamedCoordinator().emitEvent(event, includingEmitter: true) == .unhandled)
  }

  @Test("a screen without a coordinator is a view like others")
  func screenWithoutCoordinator() {
    let shop = Shop()
    shop.shop.rootResponder = nil
    #expect(shop.screen.parentCoordinator == nil)
    shop.button.emitEvent(event)
    #expect(shop.journal.take() == ["table", "screen", "window"])
  }

  @Test("a responder whose next responder is a coordinator leads to it as well")
  func nextResponderIsCoordinator() {
    final class Delegate: EventResponder {
      var nextResponder: (any EventResponder)?
    }
    let shop = Shop()
    let delegate = Delegate()
    delegate.nextResponder = shop.shop
    delegate.emitEvent(event)
    #expect(shop.journal.take() == ["shop", "app"])
  }

  @Test("below a screen inside another screen the nearest coordinator is asked first")
  func nested() {
    let shop = Shop()
    let detail = shop.cell.add(Screen())
    let button = detail.add(Panel())
    let desk = Desk("detail", shop.journal, root: detail)
    shop.shop.addChild(desk)
    button.emitEvent(event)
    #expect(shop.journal.take() == ["detail", "shop", "app"])
  }

  @Test("D11: an event whose type is only known at run time reaches the same interceptors")
  func existential() {
    let shop = Shop()
    let events: [any CoordinateEvents] = [event, Drivers.didRetire, Standings(season: 2026)]
    var seen: [String] = []
    shop.app.answer = { event in
      seen.append("\(type(of: event))")
      return .pass
    }
    shop.shop.intercept { (event: Standings) in
      seen.append("typed \(event.season)")
      return .pass
    }
    for event in events { shop.button.emitEvent(event) }
    #expect(seen == ["Teams", "Drivers", "typed 2026", "Standings"])
  }

  @Test("a chain may have more interceptors than fit on the stack", arguments: [0, 1, 31, 32, 33, 96])
  func length(count: Int) {
    let journal = Journal()
    let panels = (0..<count).map { Sensor("\($0)", journal) }
    for (panel, above) in zip(panels, panels.dropFirst()) { panel.above = above }
    let origin = Panel()
    origin.above = panels.first
    #expect(origin.emitEvent(event) == .unhandled)
    #expect(journal.take() == (0..<count).map(String.init))
    panels.last?.answer = { _ in .handled }
    #expect(origin.emitEvent(event) == (count == 0 ? .unhandled : .handled))
  }

  @Test("a chain may have a million responders, interceptors or coordinators")
  func deep() {
    final class Counting: EventIntercepting {
      nonisolated(unsafe) static var count = 0
      unowned(unsafe) let next: any EventResponder
      var nextResponder: (any EventResponder)? { next }
      init(_ next: any EventResponder) { self.next = next }
      func intercept(_ event: any CoordinateEvents) -> EventInterception {
        Self.count += 1
        return .pass
      }
    }
    let size = deepChain
    var asked = 0
    let top = Coordinator()
    top.intercept { (_: Teams) in
      asked += 1
      return .pass
    }
    // Held by an array, since Swift frees a chain of references by recursion.
    var links = [UnownedLink(top)]
    for _ in 1..<size { links.append(UnownedLink(links.last!)) }
    #expect(links.last!.emitEvent(event) == .unhandled)
    #expect(asked == 1)

    var counting: [Counting] = [Counting(top)]
    for _ in 1..<size { counting.append(Counting(counting.last!)) }
    counting.last!.emitEvent(event)
    #expect(Counting.count == size - 1)
    #expect(asked == 2)

    var bottom: EventCoordinator = top
    for _ in 1..<size {
      let child = Coordinator()
      bottom.addChild(child)
      bottom = child
    }
    bottom.emitEvent(event)
    #expect(asked == 3)
  }
}

private final class UnnamedCoordinator: Coordinator {}

/// A responder that does not hold the next one.
private final class UnownedLink: EventResponder {
  unowned(unsafe) let next: any EventResponder
  var nextResponder: (any EventResponder)? { next }
  init(_ next: any EventResponder) { self.next = next }
}
