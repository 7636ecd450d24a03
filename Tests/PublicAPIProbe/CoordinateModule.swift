// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(UIKit)
  import UIKit
#else
  import EventCoreTestSupport
#endif
import Coordinate
import Testing

// The examples of "Coming from Coordinate".
enum ComingFromCoordinate {
  struct AppEvents {
    enum Teams: CoordinateEvents, Equatable {
      case setFavorite(_ team: Int)
    }
  }

  final class TeamsViewController: UIViewController, UICoordinated {
    weak var parentCoordinator: UICoordinator?
    func show(_ teams: [Int]) {}
  }

  // The example of the module's documentation.
  final class TeamsCoordinator: Coordinator<TeamsViewController> {
    let teams = [7]

    override func start() {
      super.start()
      rootViewController.show(teams)
    }
  }

  final class AppCoordinator: Coordinator<TeamsViewController> {
    var favorites: [Int] = []

    override func interceptEvent(_ event: CoordinateEvents) -> Bool {
      guard case AppEvents.Teams.setFavorite(let team) = event else { return false }
      favorites.append(team)
      return true
    }
  }
}

// Code as programs that come from Coordinate write it, with `import Coordinate` alone.
@MainActor
@Suite("Coordinate's own names")
struct CoordinateModule {
  final class Screen: Coordinated {
    weak var parentCoordinator: Coordinating?
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

  @Test("the examples of the page run")
  func page() {
    let screen = ComingFromCoordinate.TeamsViewController()
    let app = ComingFromCoordinate.AppCoordinator(rootViewController: screen)
    app.start()
    ComingFromCoordinate.TeamsCoordinator(rootViewController: .init()).start()
    screen.emitEvent(ComingFromCoordinate.AppEvents.Teams.setFavorite(7))
    #expect(app.favorites == [7])
  }

  @Test("a coordinator for a type of screens starts, is activated, intercepts and stops")
  func life() {
    let screen = Screen()
    let (app, tab) = (AppCoordinator(rootViewController: Screen()), Coordinator(rootViewController: screen))
    var steps: [String] = []
    app.start(with: { steps.append("started") })
    app.startChild(tab)
    #expect(tab.parentCoordinator === app)
    screen.emitEvent(Favorites.added(7))
    #expect(app.favorites == [7])
    let other = Coordinator(rootViewController: screen)
    #expect(screen.parentCoordinator === other)
    let link: Coordinating? = tab
    link?.activate()
    #expect(screen.parentCoordinator === tab)
    tab.stop(with: { steps.append("stopped") })
    #expect(steps == ["started", "stopped"])
    #expect(app.childCoordinators.isEmpty && screen.parentCoordinator == nil)
    tab.activate()
    #expect(screen.parentCoordinator == nil)
    #expect(app.identifier == "AppCoordinator")
  }
}
