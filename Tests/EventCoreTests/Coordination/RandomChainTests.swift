// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Compares random hierarchies with the rules, which `World` writes down as a recursion.
@Suite("In any hierarchy an event asks the responders of the rules, in their order")
struct RandomChainTests {
  /// One hierarchy, with the names of all who intercept.
  struct World {
    let journal = Journal()
    var panels: [Panel] = []
    var desks: [Desk] = []
    var names: [ObjectIdentifier: String] = [:]
    /// Who handles the event.
    var stops: Set<String> = []

    init(_ random: inout SeededRandom) {
      for number in 0..<Int.random(in: 1...6, using: &random) {
        let desk = Desk("desk \(number)", journal)
        desks.append(desk)
        guard Bool.random(using: &random) else { continue }
        desks.dropLast().randomElement(using: &random)?.addChild(desk)
      }
      for number in 0..<Int.random(in: 1...20, using: &random) {
        let panel: Panel
        switch Int.random(in: 0..<4, using: &random) {
        case 0: panel = Sensor("panel \(number)", journal)
        case 1:
          let screen = Screen()
          if Bool.random(using: &random) {
            desks.randomElement(using: &random)?.rootResponder = screen
          }
          panel = screen
        default: panel = Panel()
        }
        // Mostly below the last panel, so that chains grow long.
        let isBranch = Int.random(in: 0..<4, using: &random) == 0
        panel.above = isBranch ? panels.randomElement(using: &random) : panels.last
        panels.append(panel)
      }
      for desk in desks {
        names[ObjectIdentifier(desk)] = desk.name
        if Int.random(in: 0..<6, using: &random) == 0 {
          stops.insert(desk.name)
          desk.answer = { _ in .handled }
        }
      }
      for case let sensor as Sensor in panels {
        names[ObjectIdentifier(sensor)] = sensor.name
        if Int.random(in: 0..<8, using: &random) == 0 {
          stops.insert(sensor.name)
          sensor.answer = { _ in .handled }
        }
      }
    }

    /// Who is asked, beginning with the responder itself.
    func asked(from responder: (any EventResponder)?) -> [String] {
      guard let responder else { return [] }
      let own = names[ObjectIdentifier(responder)].map { [$0] } ?? []
      if let name = own.first, stops.contains(name) { return own }
      return own + asked(from: next(after: responder))
    }

    func next(after responder: any EventResponder) -> (any EventResponder)? {
      (responder as? Screen)?.parentCoordinator ?? responder.nextResponder
    }
  }

  @Test("10,000 random hierarchies agree with the rules")
  func hierarchies() {
    var random = SeededRandom(seed: announcedSeed("RandomChainTests.hierarchies"))
    for number in 0..<10_000 {
      let world = World(&random)
      var emitters: [any EventResponder] = world.desks
      emitters += world.panels as [any EventResponder]
      let emitter = emitters.randomElement(using: &random)!
      let includes = Bool.random(using: &random)
      let expected = world.asked(from: includes ? emitter : world.next(after: emitter))
      let result = emitter.emitEvent(Teams.didSelect(number), includingEmitter: includes)
      let isStopped = expected.last.map(world.stops.contains) ?? false
      let journal = world.journal.take()
      guard journal == expected, (result == .handled) == isStopped else {
        Issue.record("hierarchy \(number): asked \(journal), not \(expected)")
        return
      }
    }
  }
}
