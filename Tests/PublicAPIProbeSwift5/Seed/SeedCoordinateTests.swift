// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(UIKit)
  import UIKit
#else
  import EventCoreTestSupport
#endif
import Coordinate
import Testing

#if swift(>=6)
  @Suite("Coordinate's examples, in Swift 6 mode")
#else
  @Suite("Coordinate's examples, in Swift 5 mode")
#endif
struct SeedCoordinateTests {
  @MainActor
  @Test("a tap deep in the views: the nearest coordinator reacts, the one above it stops the event")
  func favorite() {
    let controller = SeedCoordinate.TeamViewController()
    let cell = UIView()
    let teamView = SeedCoordinate.TeamView()
    controller.view.addSubview(cell)
    cell.addSubview(teamView)
    let app = SeedCoordinate.AppCoordinator(
      rootViewController: SeedCoordinate.AppViewController())
    let tabs = SeedCoordinate.TabsCoordinator(
      rootViewController: SeedCoordinate.AppViewController())
    let team = SeedCoordinate.TeamCoordinator(rootViewController: controller)
    team.dependencies = SeedCoordinate.Dependencies()
    app.startChild(tabs)
    tabs.startChild(team)
    var reachedTop = 0
    app.intercept(SeedCoordinate.AppEvents.Teams.self) { _ in
      reachedTop += 1
      return .pass
    }

    teamView.favoriteButtonTapped(teamView.favoriteButton)
    #expect(team.dependencies?.dataManager.favorites == [])
    teamView.team = SeedCoordinate.Team(name: "Benfica")
    teamView.favoriteButtonTapped(teamView.favoriteButton)
    #expect(team.dependencies?.dataManager.favorites == [SeedCoordinate.Team(name: "Benfica")])
    #expect(tabs.profileTabIcons == 1)
    #expect(reachedTop == 0)

    app.stop()
    teamView.favoriteButtonTapped(teamView.favoriteButton)
    #expect(tabs.profileTabIcons == 1)
  }
}
