// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

/// Each form has the same two interests: the newest of what waits, if its number is above 5.
@Suite("Several interests at once, on actors")
struct ActorInterestTests {
  actor Model {
    let executor = HeldExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    let log = Log<Int>()

    func append(_ number: Int) { log.append(number) }

    func register(on central: EventCentral) -> [any EventListenerHandling] {
      let both: EventListenerInterest = [.latestOnly, .custom]
      let filter: @Sendable (Ping, EventPriority, DispatchTime) -> Bool = { event, _, _ in
        event.number > 5
      }
      return [
        Ping.addListener(
          nil, { self.append($0.number) }, interestedIn: both, customFilter: filter, on: central),
        Ping.addListener(
          nil, { event, _, _ in self.append(event.number) }, interestedIn: both,
          customFilter: filter, on: central),
        Ping.addListener(
          self, { (self: isolated Model, event) in self.append(event.number) },
          interestedIn: both, customFilter: filter, on: central),
        Ping.addListener(nil, interestedIn: both, customFilter: filter, on: central) {
          self.append($0.number)
        },
      ]
    }
  }

  @Test("D4: an actor gets the newest of what waits, if the filter lets it pass", arguments: cores)
  func actor(core: EventCentral.Core) async {
    let (central, model) = (EventCentral(core: core), Model())
    let handles = await model.register(on: central)
    await offThePool {
      let executor = model.executor
      executor.hold()
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      #expect(executor.runKept() == 1)
      #expect(model.log.take() == handles.map { _ in 9 })
      #expect(handles.map(\.skippedCount) == handles.map { _ in 9 })
      for number in 0..<3 { Ping(number: number).queue(on: central) }
      #expect(executor.runKept() == 1)
      #expect(model.log.take() == [])
      #expect(handles.map(\.skippedCount) == handles.map { _ in 12 })
      for handle in handles { handle.remove() }
      executor.letGo()
    }
  }

  @MainActor
  final class Screen {
    var numbers: [Int] = []

    func onPing(_ event: Ping) { numbers.append(event.number) }

    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {
      onPing(event)
    }

    func isAboveFive(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) -> Bool {
      event.number > 5
    }
  }

  @Test(
    "D4: the MainActor gets the newest of what waits, if the filter lets it pass", arguments: cores)
  @MainActor
  func mainActor(core: EventCentral.Core) async {
    let (central, screen) = (EventCentral(core: core), Screen())
    let both: EventListenerInterest = [.latestOnly, .custom]
    let handles: [any EventListenerHandling] = [
      Ping.addListener(
        screen, screen.onPing, interestedIn: both, customFilter: screen.isAboveFive, on: central),
      Ping.addListener(
        screen, screen.onTimedPing, interestedIn: both, customFilter: screen.isAboveFive,
        on: central),
      Ping.addListener(
        screen, Screen.onPing, interestedIn: both, customFilter: { $0.isAboveFive($1, $2, $3) },
        on: central),
      Ping.addListener(
        screen, Screen.onTimedPing, interestedIn: both, customFilter: { $0.isAboveFive($1, $2, $3) },
        on: central),
      Ping.addListener(screen, interestedIn: both, customFilter: screen.isAboveFive, on: central) {
        screen.onPing($0)
      },
    ]
    #expect(handles.allSatisfy { "\($0.executesOn)" == "mainQueue" })
    for number in 0..<10 { Ping(number: number).queue(on: central) }
    #expect(await yieldUntil { handles.allSatisfy { $0.skippedCount == 9 } })
    #expect(await yieldUntil { screen.numbers == handles.map { _ in 9 } })
    for number in 0..<3 { Ping(number: number).queue(on: central) }
    #expect(await yieldUntil { handles.allSatisfy { $0.skippedCount == 12 } })
    #expect(screen.numbers == handles.map { _ in 9 })
    for handle in handles { handle.remove() }
  }

  final class Bar: UIEventThread, @unchecked Sendable {
    @MainActor static var numbers: [Int] = []

    @MainActor func onPing(_ event: Ping) { Bar.numbers.append(event.number) }

    @MainActor func onTimedPing(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {
      onPing(event)
    }
  }

  @Test(
    "D4: a UIEventThread gets the newest of what waits, if the filter lets it pass",
    arguments: cores)
  @MainActor
  func uiEventThread(core: EventCentral.Core) {
    let thread = Bar(on: EventCentral(core: core))
    let both: EventListenerInterest = [.latestOnly, .custom]
    let filter: @MainActor @Sendable (Ping, EventPriority, DispatchTime) -> Bool = { event, _, _ in
      event.number > 5
    }
    Bar.numbers = []
    let handles = [
      thread.addEventCallback(thread.onPing, interestedIn: both, customFilter: filter),
      thread.addEventCallback(thread.onTimedPing, interestedIn: both, customFilter: filter),
      thread.addEventCallback(Bar.onPing, interestedIn: both, customFilter: filter),
      thread.addEventCallback(Bar.onTimedPing, interestedIn: both, customFilter: filter),
    ]
    for number in 0..<10 { thread.queueEvent(Ping(number: number)) }
    #expect(thread.drain())
    #expect(Bar.numbers == [9, 9, 9, 9])
    #expect(handles.map(\.skippedCount) == [9, 9, 9, 9])
  }
}
