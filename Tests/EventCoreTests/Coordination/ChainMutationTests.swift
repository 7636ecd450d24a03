// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Testing

@Suite("D7: handlers may take the hierarchy apart while an event is on its way")
struct ChainMutationTests {
  let event = Teams.didSelect(1)

  @Test("a coordinator may stop itself: the event goes on to its parents")
  func stopsItself() {
    let shop = Shop()
    shop.app.start()
    shop.shop.start()
    _ = shop.journal.take()
    shop.shop.answer = { [unowned desk = shop.shop] _ in
      desk.stop()
      return .pass
    }
    #expect(shop.button.emitEvent(event) == .unhandled)
    #expect(shop.journal.take() == ["table", "screen", "shop", "shop stops", "app"])
    // The next event finds no coordinator and goes by the views alone.
    shop.button.emitEvent(event)
    #expect(shop.journal.take() == ["table", "screen", "window"])
  }

  @Test("a coordinator that is stopped before its turn is not asked; those above it are")
  func stopsAbove() {
    let shop = Shop()
    let top = Desk("top", shop.journal)
    top.addChild(shop.app)
    shop.table.answer = { [unowned app = shop.app] _ in
      app.stop()
      return .pass
    }
    shop.button.emitEvent(event)
    #expect(shop.journal.take() == ["table", "shop stops", "app stops", "screen", "top"])
  }

  @Test("a coordinator that one of its typed interceptors stops asks none of the others")
  func stopsInTypedInterceptor() {
    let shop = Shop()
    shop.shop.intercept(Teams.self) { [unowned desk = shop.shop] _ in
      desk.stop()
      return .pass
    }
    shop.shop.intercept(Teams.self) { _ in
      Issue.record("A stopped coordinator was asked.")
      return .handled
    }
    shop.screen.emitEvent(event)
    #expect(shop.journal.take() == ["shop stops", "app"])
  }

  @Test("a restarted coordinator is asked again")
  func restarts() {
    let shop = Shop()
    shop.table.answer = { [unowned desk = shop.shop, unowned app = shop.app] _ in
      desk.stop()
      app.startChild(desk)
      return .pass
    }
    shop.button.emitEvent(event)
    #expect(
      shop.journal.take() == ["table", "shop stops", "shop starts", "screen", "shop", "app"])
  }

  @Test("views that are taken out before their turn are asked all the same, and so are those above")
  func detachedViews() {
    let shop = Shop()
    shop.table.answer = { [unowned screen = shop.screen] _ in
      screen.removeAll()
      return .pass
    }
    shop.button.emitEvent(event)
    #expect(shop.journal.take() == ["table", "screen", "shop", "app"])
    shop.button.emitEvent(event)
    #expect(shop.journal.take() == ["table"])
  }

  @Test("a coordinator that moves takes its next event the new way")
  func moves() {
    let shop = Shop()
    let other = Desk("other", shop.journal)
    shop.shop.answer = { [unowned desk = shop.shop, unowned other] _ in
      other.addChild(desk)
      return .pass
    }
    shop.screen.emitEvent(event)
    #expect(shop.journal.take() == ["shop", "app"])
    shop.screen.emitEvent(event)
    #expect(shop.journal.take() == ["shop", "other"])
    #expect(shop.shop.parentCoordinator === other)
  }

  @Test("D9: everybody who is still to be asked is kept alive, and freed afterwards")
  func kept() {
    let journal = Journal()
    var top: Desk? = Desk("top", journal)
    weak let weakTop = top
    var screen: Screen? = Screen()
    weak let weakScreen = screen
    let child = Desk("child", journal, root: screen)
    top?.addChild(child)
    let sensor = screen!.add(Sensor("sensor", journal))
    let button = sensor.add(Panel())
    sensor.answer = { _ in
      child.rootResponder = nil
      screen = nil
      top = nil
      return .pass
    }
    #expect(button.emitEvent(event) == .unhandled)
    #expect(journal.take() == ["sensor", "child", "top"])
    #expect(weakTop == nil)
    #expect(weakScreen == nil)
  }

  @Test("D6: an interceptor added during an event begins with the next one, a removed one is not asked")
  func interceptors() {
    let shop = Shop()
    var second: (any EventRegistration)?
    let journal = shop.journal
    shop.shop.intercept(Teams.self) { [unowned desk = shop.shop, journal] _ in
      guard let handle = second else { return .pass }
      handle.remove()
      second = nil
      desk.intercept(Teams.self) { [journal] _ in
        journal.entries.append("added")
        return .pass
      }
      return .pass
    }
    second = shop.shop.intercept(Teams.self) { [journal] _ in
      journal.entries.append("removed")
      return .pass
    }
    shop.screen.emitEvent(event)
    #expect(shop.journal.take() == ["shop", "app"])
    shop.screen.emitEvent(event)
    #expect(shop.journal.take() == ["added", "shop", "app"])
  }

  @Test("D6: an interceptor that removes itself finishes its call, and is not asked again")
  func removesItself() {
    let coordinator = Coordinator()
    let screen = Screen()
    coordinator.rootResponder = screen
    let journal = Journal()
    var handle: (any EventRegistration)?
    handle = coordinator.intercept(Teams.self) { [journal] _ in
      handle?.remove()
      journal.entries.append("goes on")
      return .handled
    }
    #expect(screen.emitEvent(event) == .handled)
    #expect(screen.emitEvent(event) == .unhandled)
    #expect(journal.entries == ["goes on"])
  }

  @Test("what a coordinator emits before super.stop() reaches its parents, and after it nobody")
  func emitsWhileStopping() {
    let shop = Shop()
    shop.shop.start()
    _ = shop.journal.take()
    var results: [EventEmission] = []
    shop.app.answer = { _ in .handled }
    shop.shop.beforeStop = { [unowned desk = shop.shop] in
      results.append(desk.emitEvent(event))
    }
    shop.shop.afterStop = { [unowned desk = shop.shop] in
      results.append(desk.emitEvent(event, includingEmitter: true))
    }
    shop.shop.stop()
    #expect(results == [.handled, .unhandled])
    #expect(shop.journal.take() == ["app", "shop stops"])
  }
}
