// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of Coordinate's page "Events", typed in as printed around what they leave out (`...`) under
// `import Coordinate`, and compiled in Swift 6 and in Swift 5 mode as its neighbours are.
//
// - The page prints no declaration of a coordinator: here each is a `Coordinator` of what it shows.
// - `@objc` is left out where there is no Objective-C.
// - The second coordinator returns false at its end, where the page prints dots.

#if canImport(UIKit)
  import UIKit
#else
  import EventCoreTestSupport
#endif
import Coordinate

enum SeedCoordinate {
  struct Team: Equatable {
    var name: String
  }

  struct AppEvents {

    enum Teams: CoordinateEvents, Equatable {

        case setFavorite(_ team: Team)

    }

  }

  class DataManager {
    var favorites: [Team] = []

    func setFavorite(team: Team) {
      favorites.append(team)
    }
  }

  struct Dependencies {
    let dataManager = DataManager()
  }

  class TeamView: UIView {
    var team: Team?
    let favoriteButton = UIButton()

    #if canImport(ObjectiveC)
      @objc
    #endif
    func favoriteButtonTapped(_ sender: UIButton) {
        guard let team = self.team else { return }

        emitEvent(AppEvents.Teams.setFavorite(team))
    }
  }

  class TeamViewController: UIViewController, Coordinated {
    weak var parentCoordinator: Coordinating?
  }

  class TeamCoordinator: Coordinator<TeamViewController> {
    var dependencies: Dependencies?

    override func interceptEvent(_ event: CoordinateEvents) -> Bool {

        if let event = event as? AppEvents.Teams {
            if case .setFavorite(let team) = event {
                dependencies?.dataManager.setFavorite(team: team)
            }
        }

        return false
    }
  }

  class AppViewController: UIViewController, Coordinated {
    weak var parentCoordinator: Coordinating?
  }

  class AppCoordinator: Coordinator<AppViewController> {}

  class TabsCoordinator: Coordinator<AppViewController> {
    var profileTabIcons = 0

    func updateProfileTabIcon() {
      rootViewController.view.addSubview(UIView())
      profileTabIcons += 1
    }

    override func interceptEvent(_ event: CoordinateEvents) -> Bool {

        if let event = event as? AppEvents.Teams {

            switch event {
            case .setFavorite:
                self.updateProfileTabIcon()
                return true

            }

        }

        return false
    }
  }
}
