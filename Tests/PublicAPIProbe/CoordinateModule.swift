// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Coordinate
import Testing

// What programs write that come from Coordinate, with `import Coordinate` alone.
@MainActor
@Suite("Coordinate's own names")
struct CoordinateModule {
  final class Screen: UICoordinated {
    weak var parentCoordinator: UICoordinator?
    nonisolated var nextResponder: (any EventResponder)? { nil }
  }

  enum Favorites: CoordinateEvents, Equatable { case added(Int) }

  final class AppCoordinator: Coordinator<Screen> {
    var favorites: [Int] = []

    override func interceptEvent(_ event: CoordinateEvents) -> Bool {
      guard case Favorites.added(let number) = event else { return false }
      favorites.append(number)
      return true
    }
  }

  @Test("a coordinator of a type of screens starts, is activated, intercepts and stops")
  func life() {
    let screen = Screen()
    let (app, tab) = (AppCoordinator(rootViewController: Screen()), Coordinator(rootViewController: screen))
    var steps: [String] = []
    app.start(with: { steps.append("started") })
    app.startChild(tab)
    let parent: Coordinating? = tab.parentCoordinator
    #expect(parent === app)
    screen.emitEvent(Favorites.added(7))
    #expect(app.favorites == [7])
    let other = Coordinator(rootViewController: screen)
    #expect(screen.parentCoordinator === other)
    tab.activate()
    #expect(screen.parentCoordinator === tab)
    tab.stop(with: { steps.append("stopped") })
    #expect(steps == ["started", "stopped"])
    #expect(app.childCoordinators.isEmpty && screen.parentCoordinator == nil)
    #expect(app.identifier == "AppCoordinator")
  }
}
