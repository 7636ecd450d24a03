// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import AllocationCounter
import EventCore
import RawCore

// An event from a button, up eight views and a screen to the third of three coordinators, which
// handles it.
//
//     main: emit ──► view ──► ... ──► screen ──► coordinator ──► coordinator ──► coordinator: count and add up
//
// Beside it the same way up as a chain of tree nodes, of either core, where the event bubbles.

/// The candidates of this shape.
func emitCandidates(_ scale: Scale) -> [Candidate] {
  let rounds = scale.events(.lockFree) / 8
  return [(Shape.emitChain, false), (.emitAllocations, true)].flatMap { shape, counting in
    [
      (Subject.coordinators, { CoordinatorChain() }),
      (.lockFree, { NodeChain(core: .lockFree) }),
      (.locking, { NodeChain(core: .locking) }),
      (.plainSwift, { PlainChain() as any EmitChain }),
    ].map {
      (subject: Subject, make: @escaping () -> any EmitChain) in
      Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
        EmitTrial(make(), rounds: rounds, counting: counting)
      }
    }
  }
}

private let viewCount = 8

extension Event24: CoordinateEvents {}

private protocol EmitChain: AnyObject {
  var tally: LocalTally { get }
  func emit(_ event: Event24)
}

private final class CoordinatorChain: EmitChain {
  class View: EventResponder {
    weak var superview: View?
    var nextResponder: (any EventResponder)? { superview }
  }

  final class Screen: View, Coordinated {
    weak var parentCoordinator: Coordinator?
  }

  private let app = Coordinator()
  private let section = Coordinator()
  private let shop: TypedCoordinator<Screen>
  private var views: [View] = []
  let tally = LocalTally()

  init() {
    shop = TypedCoordinator(rootViewController: Screen())
    app.start()
    app.startChild(section)
    section.startChild(shop)
    var above: View = shop.rootViewController
    for _ in 0...viewCount {
      let view = View()
      view.superview = above
      views.append(view)
      above = view
    }
    app.intercept(Event24.self) { [tally] event in
      tally.receive(event)
      return .handled
    }
  }

  func emit(_ event: Event24) {
    views[viewCount].emitEvent(event)
  }
}

/// A chain of nodes in place of the button, views, screen and coordinators.
private final class NodeChain: EmitChain {
  private let top: EventNode
  private let button: EventNode
  let tally = LocalTally()

  init(core: EventCentral.Core) {
    top = EventNode(parent: nil, core: core)
    // Two coordinators, the screen, the views and the button hold the one above them.
    button = (0..<viewCount + 4).reduce(top) { above, _ in EventNode(parent: above) }
    top.addHandler([.onRaise, .consumeEvent]) { [tally] (event: Event24) in tally.receive(event) }
  }

  func emit(_ event: Event24) {
    button.raise(event: event, scope: .bubbling)
  }
}

/// A chain as one writes it by hand: each link asks itself and calls the next.
private final class PlainChain: EmitChain {
  class Link {
    weak var next: Link?
    func intercepts(_ event: any CoordinateEvents) -> Bool { false }

    func emit(_ event: any CoordinateEvents) {
      guard !intercepts(event) else { return }
      next?.emit(event)
    }
  }

  final class Top: Link {
    let tally: LocalTally
    init(_ tally: LocalTally) { self.tally = tally }

    override func intercepts(_ event: any CoordinateEvents) -> Bool {
      guard let event = event as? Event24 else { return false }
      tally.receive(event)
      return true
    }
  }

  private var links: [Link] = []
  let tally = LocalTally()

  init() {
    links.append(Top(tally))
    // Two coordinators, the screen, the views and the button.
    for _ in 0..<viewCount + 4 {
      let link = Link()
      link.next = links.last
      links.append(link)
    }
  }

  func emit(_ event: Event24) {
    links[viewCount + 4].next?.emit(event)
  }
}

private final class EmitTrial: Trial {
  private let chain: any EmitChain
  private let rounds: Int
  private let counting: Bool

  init(_ chain: any EmitChain, rounds: Int, counting: Bool) {
    self.chain = chain
    self.rounds = rounds
    self.counting = counting
  }

  func run() -> Double {
    for number in 0..<rounds / 8 { chain.emit(Event24(number: UInt64(number))) }
    chain.tally.count = 0
    chain.tally.sum = 0
    let window = Window(counting: counting)
    for number in 0..<rounds { chain.emit(Event24(number: UInt64(number))) }
    let nanoseconds = window.nanoseconds(until: evb_now())
    let blocks = counting ? evb_allocations_disarm().blocks : 0
    check(
      chain.tally.count == rounds && chain.tally.sum == UInt64(rounds * (rounds - 1) / 2),
      "The top of the chain got \(chain.tally.count) events of \(rounds).")
    return (counting ? Double(blocks) : nanoseconds) / Double(rounds)
  }

  func end() {}
}
