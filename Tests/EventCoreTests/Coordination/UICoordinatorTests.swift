// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

#if canImport(UIKit)
  import UIKit
#endif

@MainActor
@Suite("UICoordinator is a coordinator on the MainActor")
struct UICoordinatorTests {
  /// State that the MainActor guards.
  final class Profile {
    var icon = "none"
  }

  @MainActor
  final class TeamScreen: UICoordinated {
    weak var parentCoordinator: UICoordinator?
    nonisolated var nextResponder: (any EventResponder)? { nil }
    let profile = Profile()
  }

  final class TeamCoordinator: UICoordinator {
    let screen = TeamScreen()
    var starts = 0
    var stops = 0

    init() {
      super.init(rootResponder: screen)
    }

    override func start() {
      super.start()
      starts += 1
      screen.profile.icon = "started"
    }

    override func stop() {
      super.stop()
      stops += 1
    }

    override func interceptEvent(_ event: CoordinateEvents) -> Bool {
      guard case Teams.setFavorite(let name) = event else { return false }
      screen.profile.icon = name
      return true
    }
  }

  @Test("overrides may touch what the MainActor guards")
  func overrides() {
    let coordinator = TeamCoordinator()
    #expect(coordinator.screen.parentCoordinator === coordinator)
    coordinator.start()
    #expect(coordinator.screen.profile.icon == "started")
    #expect(coordinator.screen.emitEvent(Teams.setFavorite("star")) == .handled)
    #expect(coordinator.screen.profile.icon == "star")
    #expect(coordinator.screen.emitEvent(Teams.didSelect(1)) == .unhandled)
    coordinator.stop()
    #expect(coordinator.screen.parentCoordinator == nil)
    #expect(coordinator.screen.emitEvent(Teams.setFavorite("star")) == .unhandled)
  }

  @Test("closures that are made on the MainActor stay there")
  func closures() {
    final class Typed: UICoordinator {
      let profile = Profile()
      init() {
        super.init()
        intercept(Teams.self) { [unowned self] _ in
          profile.icon = "typed"
          return .handled
        }
      }
      override func intercept(_ event: any CoordinateEvents) -> EventInterception {
        profile.icon = "override"
        return .pass
      }
    }
    let coordinator = Typed()
    #expect(coordinator.emitEvent(Drivers.didRetire, includingEmitter: true) == .unhandled)
    #expect(coordinator.profile.icon == "override")
    #expect(coordinator.emitEvent(Teams.didSelect(1), includingEmitter: true) == .handled)
    #expect(coordinator.profile.icon == "typed")
  }

  @Test("coordinators of both kinds may stand in one tree")
  func mixed() {
    let journal = Journal()
    let top = Desk("top", journal)
    let middle = TeamCoordinator()
    let bottom = Desk("bottom", journal)
    top.startChild(middle)
    middle.startChild(bottom)
    #expect(middle.starts == 1)
    #expect(bottom.emitEvent(Teams.didSelect(2)) == .unhandled)
    #expect(journal.take() == ["bottom starts", "top"])
    #expect(bottom.emitEvent(Teams.setFavorite("x")) == .handled)
    #expect(middle.screen.profile.icon == "x")
    top.stop()
    #expect(middle.stops == 1)
    #expect(journal.take() == ["bottom stops", "top stops"])
  }

  @Test("a root that is replaced is unlinked and freed (D9)")
  func roots() {
    let coordinator = UICoordinator()
    weak var gone: TeamScreen?
    do {
      let screen = TeamScreen()
      gone = screen
      coordinator.rootResponder = screen
      #expect(screen.parentCoordinator === coordinator)
      coordinator.rootResponder = nil
      #expect(screen.parentCoordinator == nil)
    }
    #expect(gone == nil)
  }

  @Test("view controllers may conform with a check at run time or with an isolated conformance")
  func conformances() {
    final class Checked: UIViewController, @preconcurrency Coordinated,
      @preconcurrency EventIntercepting
    {
      weak var parentCoordinator: Coordinator?
      var seen = 0
      func intercept(_ event: any CoordinateEvents) -> EventInterception {
        seen += 1
        return .pass
      }
    }
    let checked = Checked()
    let desk = Desk("desk", Journal(), root: checked)
    checked.view.emitEvent(Teams.didSelect(1))
    #expect(checked.seen == 1)
    #expect(desk.journal.take() == ["desk"])

    #if compiler(>=6.2)
      final class Isolated: UIViewController, UICoordinated, @MainActor EventIntercepting {
        weak var parentCoordinator: UICoordinator?
        var seen = 0
        func interceptEvent(_ event: CoordinateEvents) -> Bool {
          seen += 1
          return false
        }
      }
      let isolated = Isolated()
      let coordinator = TeamCoordinator()
      coordinator.rootResponder = isolated
      #expect(isolated.view.emitEvent(Teams.setFavorite("a")) == .handled)
      #expect(isolated.seen == 1)
      #expect(coordinator.screen.profile.icon == "a")

      final class IsolatedRoot: UIViewController, @MainActor Coordinated {
        weak var parentCoordinator: Coordinator?
      }
      let root = IsolatedRoot()
      let other = Desk("other", desk.journal, root: root)
      root.emitEvent(Teams.didSelect(1))
      #expect(desk.journal.take() == ["other"])
      other.stop()
    #endif
  }
}
