// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Coordinators that do something in their deinit")
struct CoordinatorDeinitTests {
  @Test("a coordinator that stops in its deinit stops those below, the last child first")
  func stopInDeinit() {
    final class Noting: Coordinator {
      let (name, log): (String, Log<String>)
      init(_ name: String, _ log: Log<String>) {
        (self.name, self.log) = (name, log)
        super.init(rootResponder: nil)
      }
      override func stop() {
        log.append(name)
        super.stop()
      }
    }
    final class App: Coordinator {
      deinit { stop() }
    }
    let log = Log<String>()
    var app: App? = App(rootResponder: nil)
    app?.start()
    let (first, last, below) = (Noting("first", log), Noting("last", log), Noting("below", log))
    app?.startChild(first)
    app?.startChild(last)
    last.startChild(below)
    app = nil
    #expect(log.entries == ["below", "last", "first"])
    #expect(!first.isStarted && !last.isStarted && !below.isStarted)
  }

  @Test("one that stops in its deinit stops those below also if it is not the top, but goes with it")
  func stopInDeinitBelow() {
    final class Part: Coordinator {
      let (name, log): (String, Log<String>)
      let stopsAtEnd: Bool
      init(_ name: String, _ log: Log<String>, stopsAtEnd: Bool = false) {
        (self.name, self.log, self.stopsAtEnd) = (name, log, stopsAtEnd)
        super.init(rootResponder: nil)
      }
      override func stop() {
        super.stop()
        log.append(name)
      }
      deinit { if stopsAtEnd { stop() } }
    }
    let log = Log<String>()
    let (leaf, other) = (Part("leaf", log), Part("other", log))
    do {
      let top = Coordinator()
      let (first, second) = (Part("first", log, stopsAtEnd: true), Part("second", log, stopsAtEnd: true))
      let between = Part("between", log)
      top.startChild(first)
      top.startChild(second)
      first.startChild(between)
      between.startChild(leaf)
      second.startChild(other)
    }
    #expect(log.entries == ["other", "second", "leaf", "between", "first"])
    #expect(!leaf.isStarted && !other.isStarted)
    #expect(leaf.parentCoordinator == nil)
  }

  @Test("D9: what a deinit releases is gone when it returns, also if it runs as a tree ends")
  func releaseInDeinit() {
    final class Holder: Coordinator {
      var held: Coordinator?
      weak var below: EventCoordinator?
      let log: Log<Bool>
      init(_ log: Log<Bool>) {
        self.log = log
        let (held, below) = (Coordinator(), Coordinator())
        held.addChild(below)
        (self.held, self.below) = (held, below)
        super.init(rootResponder: nil)
      }
      deinit {
        held = nil
        log.append(below == nil)
      }
    }
    let log = Log<Bool>()
    do {
      let top = Coordinator()
      top.addChild(Holder(log))
      top.childCoordinators[0].addChild(Holder(log))
    }
    #expect(log.entries == [true, true])
  }

  @Test("a coordinator that emits in its deinit, itself included, is asked by its method")
  func emissionInDeinit() {
    final class Leaving: Coordinator {
      let log: Log<String>
      init(_ log: Log<String>) {
        self.log = log
        super.init(rootResponder: nil)
        intercept(Leaving.onTeams)
      }
      func onTeams(_ event: Teams) -> EventInterception {
        log.append("asked \(event)")
        return .pass
      }
      deinit { log.append("\(emitEvent(Teams.didSelect(1), includingEmitter: true))") }
    }
    let log = Log<String>()
    var leaving: Leaving? = Leaving(log)
    // The interceptor's handle outlives it.
    let handle = leaving!.intercept(Leaving.onTeams)
    leaving = nil
    #expect(log.entries == ["asked didSelect(1)", "asked didSelect(1)", "unhandled"])
    #expect(!handle.isActive)
  }

  @Test("what a coordinator shows may emit in its deinit, when another one replaces it, also in an interceptor")
  func replacedRoot() {
    final class App: Coordinator {
      let log: Log<String>
      init(_ log: Log<String>) {
        self.log = log
        super.init(rootResponder: nil)
      }
      override func intercept(_ event: any CoordinateEvents) -> EventInterception {
        switch event {
        case Screens.shown: rootResponder = Screen("second", self)
        case Screens.closed(let name):
          log.append("\(name) closed, shown: \((rootResponder as? Screen)?.name ?? "none")")
        default: return .pass
        }
        return .handled
      }
    }
    enum Screens: CoordinateEvents {
      case shown, closed(String)
    }
    final class Screen: Coordinated {
      weak var parentCoordinator: Coordinator?
      private unowned let app: App
      let name: String
      var nextResponder: (any EventResponder)? { app }
      init(_ name: String, _ app: App) { (self.name, self.app) = (name, app) }
      deinit { emitEvent(Screens.closed(name)) }
    }
    final class Button: EventResponder {
      let nextResponder: (any EventResponder)?
      init(_ app: App) { nextResponder = app }
    }
    let log = Log<String>()
    let app = App(log)
    app.rootResponder = Screen("first", app)
    #expect(Button(app).emitEvent(Screens.shown) == .handled)
    app.rootResponder = nil
    #expect(log.entries == ["first closed, shown: second", "second closed, shown: none"])
  }

  @Test("what the closure for unhandled events held may emit in its deinit, when another one replaces it")
  func replacedUnhandled() {
    enum End: CoordinateEvents {
      case session(Int)
    }
    final class Session: EventResponder {
      let app: Coordinator
      let number: Int
      var nextResponder: (any EventResponder)? { app }
      init(_ number: Int, _ app: Coordinator) { (self.number, self.app) = (number, app) }
      deinit { emitEvent(End.session(number)) }
    }
    let (app, log) = (Coordinator(), Log<String>())
    func note(_ name: String, _ session: Session?) {
      app.unhandledEvents = { event in
        log.append("\(name): \(event)")
        return withExtendedLifetime(session) { .pass }
      }
    }
    note("first", Session(1, app))
    note("second", Session(2, app))
    app.unhandledEvents = nil
    #expect(log.entries == ["second: session(1)"])
  }
}
