// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A hierarchy like that of a user interface, whose members write into a journal when they are asked.

/// The length of chains that would overflow a stack if they were walked by recursion; shorter in the
/// sanitizers' short runs.
let deepChain = orderStep == 1 ? 1_000_000 : 100_000

enum Teams: CoordinateEvents, Equatable {
  case setFavorite(_ name: String)
  case didSelect(_ number: Int)
}

enum Drivers: CoordinateEvents, Equatable {
  case didRetire
}

/// More than the three words that a box holds in place.
struct Standings: CoordinateEvents, Equatable {
  var points = [Int](repeating: 0, count: 3)
  var season = 0
  var round = 0
  var leader: String? = nil
}

final class Journal {
  var entries: [String] = []

  func take() -> [String] {
    defer { entries = [] }
    return entries
  }
}

/// A view that is a link of the chain and no more.
class Panel: EventResponder {
  weak var above: Panel?
  private(set) var panels: [Panel] = []

  var nextResponder: (any EventResponder)? { above }

  @discardableResult
  func add<P: Panel>(_ panel: P) -> P {
    panels.append(panel)
    panel.above = self
    return panel
  }

  func removeAll() {
    for panel in panels { panel.above = nil }
    panels = []
  }
}

/// A view that looks at events.
final class Sensor: Panel, EventIntercepting {
  let name: String
  let journal: Journal
  var answer: (any CoordinateEvents) -> EventInterception = { _ in .pass }

  init(_ name: String, _ journal: Journal) {
    self.name = name
    self.journal = journal
  }

  func intercept(_ event: any CoordinateEvents) -> EventInterception {
    journal.entries.append(name)
    return answer(event)
  }
}

/// A view controller: the root of a coordinator.
class Screen: Panel, Coordinated {
  weak var parentCoordinator: Coordinator?
}

/// A view controller that looks at events, too, in the Bool form.
final class SensitiveScreen: Screen, EventIntercepting {
  let journal: Journal
  var stops = false

  init(_ journal: Journal) {
    self.journal = journal
  }

  func interceptEvent(_ event: CoordinateEvents) -> Bool {
    journal.entries.append("screen")
    return stops
  }
}

/// Notes everything that happens to it.
final class Desk: Coordinator {
  let name: String
  let journal: Journal
  var answer: (any CoordinateEvents) -> EventInterception = { _ in .pass }
  var onStart: () -> Void = {}
  var beforeStop: () -> Void = {}
  var afterStop: () -> Void = {}

  init(_ name: String, _ journal: Journal, root: (any Coordinated)? = nil) {
    self.name = name
    self.journal = journal
    super.init(rootResponder: root)
  }

  override func start() {
    super.start()
    journal.entries.append("\(name) starts")
    onStart()
  }

  override func stop() {
    beforeStop()
    super.stop()
    journal.entries.append("\(name) stops")
    afterStop()
  }

  override func intercept(_ event: any CoordinateEvents) -> EventInterception {
    journal.entries.append(name)
    return answer(event)
  }
}

/// A button in a cell in a table on a screen. The screen belongs to the shop's coordinator, which is
/// below the app's.
struct Shop {
  let journal = Journal()
  let app: Desk
  let shop: Desk
  let window: Sensor
  let screen: SensitiveScreen
  let table: Sensor
  let cell: Panel
  let button: Sensor

  init() {
    window = Sensor("window", journal)
    screen = window.add(SensitiveScreen(journal))
    table = screen.add(Sensor("table", journal))
    cell = table.add(Panel())
    button = cell.add(Sensor("button", journal))
    app = Desk("app", journal)
    shop = Desk("shop", journal, root: screen)
    app.addChild(shop)
  }
}
