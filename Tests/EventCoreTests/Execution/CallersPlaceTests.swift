// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

/// A block that a queue runs by `sync` is on its caller's actor, as far as Swift is concerned; Dispatch says that it is
/// on this queue alone.
@MainActor
@Suite("The MainActor inside another queue's sync")
struct CallersPlaceTests {
  final class Screen: UICoordinated {
    weak var parentCoordinator: UICoordinator?
    nonisolated var nextResponder: (any EventResponder)? { nil }
  }

  final class Desk: UICoordinator {
    override func interceptEvent(_ event: CoordinateEvents) -> Bool { true }
  }

  /// Not `Sendable`.
  final class Model {
    var numbers: [Int] = []
    func onPing(_ event: Ping) { numbers.append(event.number) }
  }

  let queue = DispatchQueue(label: "another")

  @Test("coordinators are made, started, asked and stopped there")
  func coordinators() {
    let screen = Screen()
    queue.sync {
      MainActor.preconditionIsolated()
      let desk = Desk(rootResponder: screen)
      desk.start()
      #expect(screen.emitEvent(Teams.didSelect(1)) == .handled)
      desk.stop()
    }
    #expect(screen.parentCoordinator == nil)
  }

  @Test("the handler of an owner that is not Sendable is called there", arguments: cores)
  func owners(core: EventCentral.Core) {
    let (node, model) = (EventNode(core: core), Model())
    node.addHandler(owner: model, Model.onPing)
    for number in 0..<3 { queue.sync { _ = node.raise(event: Ping(number: number)) } }
    #expect(model.numbers == [0, 1, 2])
  }

  @Test("a deterministic central runs there what belongs to the main queue", arguments: cores)
  func deterministic(core: EventCentral.Core) {
    let central = EventCentral(deterministic: 1, core: core)
    let log = Log<Int>()
    let listener = Ping.addListener(nil, { log.append($0.number) }, executeOn: .main, on: central)
    Ping(number: 1).queue(on: central)
    #expect(queue.sync { central.run() } == 1)
    #expect(log.entries == [1])
    listener.remove()
  }

  @Test("D10: drain handles the events itself there", arguments: cores)
  func drains(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let log = Log<Int>()
    let thread = UIEventThread(on: central)
    thread.addEventCallback { @MainActor @Sendable (event: Ping) in log.append(event.number) }
    for number in 0..<3 { Ping(number: number).queue(on: central) }
    // The deadline is for this test to fail by.
    #expect(queue.sync { thread.drain(until: .now() + .seconds(10)) })
    #expect(log.entries == [0, 1, 2])
  }

  @Test("D12: join traps there, where it would wait for itself", .timeLimit(.minutes(1)))
  func joins() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await MainActor.run {
        let thread = UIEventThread(on: EventCentral())
        DispatchQueue(label: "another").sync { thread.join() }
      }
    }
    expectMessage(result, "where it would wait for itself: call drain(until:) or cancel()")
  }
}
