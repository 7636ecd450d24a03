// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of Coordinate's page "Events", typed in as printed around what they leave out (`...`), and
// compiled in Swift 6 and in Swift 5 mode as its neighbours are.
//
// - Its two coordinators are subclasses of `Coordinator`. In Swift 6 mode what they do belongs to the
//   MainActor, as all of UIKit does: there, two lines make `Coordinator` and `Coordinated` other names of
//   `UICoordinator` and `UICoordinated`. In Swift 5 mode nothing is added.
// - `@objc` is left out where there is no Objective-C.
// - The second coordinator returns false at its end, where the page prints dots.

#if canImport(UIKit)
  import UIKit
#else
  import EventCoreTestSupport
#endif
import EventCore

enum SeedCoordinate {
  #if swift(>=6)
    typealias Coordinator = UICoordinator
    typealias Coordinated = UICoordinated
  #endif

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
    weak var parentCoordinator: Coordinator?
  }

  class TeamCoordinator: Coordinator {
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

  class AppCoordinator: Coordinator {}

  class TabsCoordinator: Coordinator {
    let tabs = UIViewController()
    var profileTabIcons = 0

    func updateProfileTabIcon() {
      tabs.view.addSubview(UIView())
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
