// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the coordinators' symbols, compiled as a user would.

import EventCore
import Testing

/// A namespace, since the examples of other symbols have types of the same names.
enum SymbolsOfCoordination {
  struct Team: Hashable {
    var name: String
  }

  // EventResponder.
  class View: EventResponder {
    weak var superview: View?
    var nextResponder: (any EventResponder)? { superview }
  }

  class ViewController: View {}

  // CoordinateEvents.
  struct AppEvents {
    enum Teams: CoordinateEvents, Equatable {
      case setFavorite(_ team: Team)
    }
  }

  final class FavoriteButton: View {
    var team = Team(name: "Ajax")

    func tapped() {
      emitEvent(AppEvents.Teams.setFavorite(team))
    }
  }

  // Coordinated.
  final class ShopViewController: ViewController, Coordinated {
    weak var parentCoordinator: Coordinator?
  }

  // TypedCoordinator.
  final class TeamsViewController: ViewController, Coordinated {
    weak var parentCoordinator: Coordinator?
    private(set) var shown: [Team] = []

    func show(_ teams: [Team]) { shown = teams }
  }

  final class TeamsCoordinator: TypedCoordinator<TeamsViewController> {
    let teams = [Team(name: "Ajax")]

    override func start() {
      super.start()
      rootViewController.show(teams)
    }
  }

  // EventIntercepting.
  final class SpinnerController: ViewController, EventIntercepting {
    private(set) var isSpinning = false

    func intercept(_ event: any CoordinateEvents) -> EventInterception {
      guard case AppEvents.Loading.began = event else { return .pass }
      spin()
      return .handled
    }

    private func spin() { isSpinning = true }
  }
}

extension SymbolsOfCoordination.AppEvents {
  enum Loading: CoordinateEvents, Equatable {
    case began
  }

  enum Session: CoordinateEvents, Equatable {
    case ended
  }
}

// Coordinator.
extension SymbolsOfCoordination {
  enum Overrides {
    final class TeamsCoordinator: Coordinator {}

    final class ShopCoordinator: Coordinator {
      private(set) var favorites: Set<Team> = []

      override func start() {
        super.start()
        startChild(TeamsCoordinator(rootResponder: TeamsViewController()))
      }

      override func interceptEvent(_ event: CoordinateEvents) -> Bool {
        guard case AppEvents.Teams.setFavorite(let team) = event else { return false }
        favorites.insert(team)
        return true
      }
    }
  }
}

// EventCoordinator.intercept(_:_:) and intercept(_:).
extension SymbolsOfCoordination {
  enum Interceptors {
    final class ShopCoordinator: Coordinator {
      private(set) var favorites: Set<Team> = []

      func addClosure() {
        intercept(AppEvents.Teams.self) { [unowned self] event in
          switch event {
          case .setFavorite(let team):
            favorites.insert(team)
            return .handled
          }
        }
      }

      func addMethod() {
        intercept(ShopCoordinator.onTeams)
      }

      func onTeams(_ event: AppEvents.Teams) -> EventInterception { .handled }
    }
  }
}

// UICoordinated, UICoordinator: with what UIKit would bring.
extension SymbolsOfCoordination {
  enum OnMainActor {
    @MainActor
    class UIViewController: @preconcurrency EventResponder {
      var nextResponder: (any EventResponder)? { nil }
    }

    @MainActor
    final class UIWindow {
      var rootViewController: UIViewController?
    }

    final class ShopViewController: UIViewController, UICoordinated {
      weak var parentCoordinator: UICoordinator?
    }

    final class ShopCoordinator: UICoordinator {
      let window = UIWindow()
      let shopViewController = ShopViewController()

      override func start() {
        super.start()
        window.rootViewController = shopViewController
      }
    }
  }
}

@Suite("The examples of the coordinators' symbols compile and run")
struct SymbolExamplesCoordination {
  typealias Symbols = SymbolsOfCoordination

  @Test("a button's event is handled by an override, by a closure and by a method")
  func intercepted() {
    let button = Symbols.FavoriteButton()
    let screen = Symbols.ShopViewController()
    button.superview = screen

    let shop = Symbols.Overrides.ShopCoordinator(rootResponder: screen)
    shop.start()
    button.tapped()
    #expect(shop.favorites == [button.team])
    #expect(shop.childCoordinators.count == 1)

    let closure = Symbols.Interceptors.ShopCoordinator(rootResponder: screen)
    closure.addClosure()
    button.tapped()
    #expect(closure.favorites == [button.team])

    let method = Symbols.Interceptors.ShopCoordinator(rootResponder: screen)
    method.addMethod()
    #expect(button.emitEvent(Symbols.AppEvents.Teams.setFavorite(button.team)) == .handled)
    #expect(method.favorites.isEmpty)
  }

  @Test("a coordinator shows what it knows the type of")
  func typed() {
    let coordinator = Symbols.TeamsCoordinator(rootViewController: Symbols.TeamsViewController())
    coordinator.start()
    #expect(coordinator.rootViewController.shown == coordinator.teams)
  }

  @Test("a view controller on the way handles an event")
  func onTheWay() {
    let spinner = Symbols.SpinnerController()
    let view = Symbols.View()
    view.superview = spinner
    #expect(view.emitEvent(Symbols.AppEvents.Loading.began) == .handled)
    #expect(spinner.isSpinning)
  }

  @Test("what nobody wants is logged")
  func unhandled() {
    let app = Coordinator()
    var log: [String] = []
    app.unhandledEvents = { event in
      log.append("nobody wanted \(event)")
      return .pass
    }
    #expect(app.emitEvent(Symbols.AppEvents.Loading.began) == .unhandled)
    #expect(log == ["nobody wanted began"])
  }

  @Test("what a central has is emitted, on the MainActor")
  @MainActor
  func bridged() async {
    let network = EventCentral()
    let app = Coordinator()
    app.emitEvents(of: AppEvents.Session.self, from: network)
    let isHandled = await withCheckedContinuation { continuation in
      app.unhandledEvents = { _ in
        continuation.resume(returning: true)
        return .handled
      }
      AppEvents.Session.ended.queue(on: network)
    }
    #expect(isHandled)
  }

  private typealias AppEvents = Symbols.AppEvents

  @Test("a coordinator on the MainActor")
  @MainActor
  func onMainActor() {
    let shop = Symbols.OnMainActor.ShopCoordinator()
    shop.start()
    #expect(shop.window.rootViewController === shop.shopViewController)
    shop.rootResponder = shop.shopViewController
    #expect(shop.shopViewController.parentCoordinator === shop)
  }
}
