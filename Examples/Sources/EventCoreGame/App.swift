// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// The top coordinator: it knows which screen follows which.
final class App: Coordinator {
  private let (world, pump): (EventCentral, EventPump)
  private var seeds = SeededRandom(seed: 0)
  private(set) var (best, hasQuit) = (0, false)

  init(on world: EventCentral, pump: EventPump) { (self.world, self.pump) = (world, pump) }

  /// The games from now on follow from this number.
  func seed(_ seed: UInt64) { seeds = SeededRandom(seed: seed) }

  override func start() {
    super.start()
    intercept(App.onNavigation)
    // A timer has no screen from which it could emit. What it queues on the central enters the chain here.
    emitEvents(of: Navigation.self, from: world, executeOn: .pump(pump))
    show(Card.title(best: best))
  }

  private func onNavigation(_ event: Navigation) -> EventInterception {
    switch event {
    case .quit: hasQuit = true
    case .title: show(Card.title(best: best))
    case .play: show(PlayScreen(on: world, pump: pump, seed: seeds.next()))
    case .over(let score, let wave):
      best = max(best, score)
      show(Card.over(score: score, wave: wave, best: best))
    case .pause, .resume: return .pass
    }
    return .handled
  }

  private func show(_ screen: Screen) {
    // With what is below it, such as a pause. An event that is on its way from there arrives all the same.
    for case let child as Coordinator in childCoordinators { child.stop() }
    startChild(PausableCoordinator(rootResponder: screen))
  }

  /// The screens that are shown, from back to front. The front one gets the keys and the ticks.
  var screens: [Screen] {
    let chain = sequence(first: self as EventCoordinator) { $0.childCoordinators.last }
    return chain.compactMap { ($0 as? Coordinator)?.rootResponder as? Screen }
  }
}

/// A screen, with a pause in front of it now and then. The app above does not learn of pauses.
final class PausableCoordinator: Coordinator {
  private let pause = Coordinator(rootResponder: Card.pause)

  override func intercept(_ event: any CoordinateEvents) -> EventInterception {
    switch event {
    case Navigation.pause: startChild(pause)
    case Navigation.resume: pause.stop()
    default: return .pass
    }
    return .handled
  }
}
