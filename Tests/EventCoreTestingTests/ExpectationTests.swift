// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import EventCoreTesting
import Testing

@Suite("Expectations of tests")
struct ExpectationTests {
  struct Hit: Eventable, Equatable { var points = 0 }
  struct Score: Eventable, Equatable { var points = 0 }

  /// Answers each hit with a score, after a time.
  final class Referee: EventThread, @unchecked Sendable {
    override func registerEventListeners() { addEventCallback(Referee.onHit) }
    func onHit(_ hit: Hit) {
      Score(points: hit.points).scheduleQueue(after: .milliseconds(10 * hit.points), on: central)
    }
  }

  @Test("the next event comes from what was dispatched before, at its time", arguments: cores)
  func next(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    let referee = Referee(on: world)
    let start = world.now
    Hit(points: 3).queue(on: world)
    Hit(points: 2).queue(on: world)
    #expect(try await world.next(Score.self, within: .milliseconds(20)) == Score(points: 2))
    #expect(world.now == start + .milliseconds(20))
    #expect(try await world.next(within: .seconds(1)) { (score: Score) in score.points > 2 } == Score(points: 3))
    #expect(world.now == start + .milliseconds(30))
    #expect(await referee.drain())
  }

  @MainActor
  @Test("a test on the MainActor runs its deterministic central there", arguments: cores)
  func onMainActor(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    // On the MainActor, too.
    let handle = Hit.addListener(nil, { hit in Score(points: hit.points).queue(on: world) }, on: world)
    Hit(points: 3).queue(on: world)
    #expect(try await world.next(Score.self, within: .seconds(1)) == Score(points: 3))
    try await world.expect(no: Score.self, within: .seconds(1))
    handle.remove()
  }

  @MainActor
  @Test("drains and joins of a deterministic central run its events on the caller's actor", arguments: cores)
  func drainsOnMainActor(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    var points = 0
    // On the MainActor, too.
    Hit.addListener(nil, { points += $0.points }, on: world)
    func hit() { Hit(points: 1).queue(on: world) }
    hit()
    #expect(await Referee(on: world).drain())
    hit()
    let cancelled = Referee(on: world)
    cancelled.cancel()
    await cancelled.join()
    hit()
    #expect(await EventPool<Referee>(capacity: 2, on: world).drain())
    hit()
    let pool = EventPool<Referee>(capacity: 2, on: world)
    pool.cancel()
    await pool.join()
    hit()
    #expect(await world.drain())
    #expect(points == 5)
  }

  @Test("an event that does not come, or not in time, is an error that names it", arguments: cores)
  func none(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    let referee = Referee(on: world)
    let start = world.now
    Hit(points: 3).queue(on: world)
    let error = await #expect(throws: EventExpectationError.self) {
      try await world.next(Score.self, within: .milliseconds(30) - .nanoseconds(1))
    }
    #expect(error?.description.hasPrefix("Expected a Score, and none came within") == true)
    #expect(world.now == start + .nanoseconds(29_999_999))
    #expect(try await world.next(Score.self, within: .nanoseconds(1)) == Score(points: 3))
    referee.cancel()
  }

  @Test("no event for a time, and one that comes all the same", arguments: cores)
  func expectNone(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    let referee = Referee(on: world)
    Hit(points: 3).queue(on: world)
    try await world.expect(no: Score.self, within: .milliseconds(29))
    let error = await #expect(throws: EventExpectationError.self) {
      try await world.expect(no: Score.self, within: .seconds(1))
    }
    #expect(error?.description.contains("there came Score(points: 3)") == true)
    referee.cancel()
  }

  @Test("time moves from deadline to deadline", arguments: cores)
  func advance(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 1, core: core)
    let times = Log<DispatchTime>()
    Score.addListener(nil, { _, _, time in times.append(time) }, executeOn: .listenerThread, on: world)
    let start = world.now
    Score().scheduleQueue(every: .seconds(60), on: world)
    world.advance(by: .seconds(180))
    #expect(times.take() == [60, 120, 180].map { start + .seconds($0) })
    world.advance(by: .zero)
    world.advance(by: .seconds(59))
    #expect(times.entries.isEmpty)
    #expect(world.now == start + .seconds(239))
  }

  @Test("a probe records what it gets, in order, and ends with its last reference", arguments: cores)
  func probe(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 1, core: core)
    var probe: EventProbe? = EventProbe(Hit.self, on: world)
    let odd = EventProbe<Hit>(on: world) { $0.points % 2 == 1 }
    for points in 0..<5 { Hit(points: points).queue(priority: points == 4 ? .high : .normal, on: world) }
    #expect(probe?.events == [])
    world.run()
    #expect(probe?.take().map(\.points) == [4, 0, 1, 2, 3])
    #expect(odd.events.map(\.points) == [1, 3])
    #expect(probe?.events == [])
    probe = nil
    #expect(world.listener.listenerCount == 1)
  }

  @Test("the event that a central keeps is none that a probe or an expectation gets", arguments: cores)
  func sticky(core: EventCentral.Core) async throws {
    let live = EventCentral(core: core)
    Score.keepNewest(on: live)
    Score(points: 1).queue(on: live)
    try await live.expect(no: Score.self, within: .milliseconds(1))
    let world = EventCentral(deterministic: 1, core: core)
    Score.keepNewest(on: world)
    Score(points: 1).queue(on: world)
    let probe = EventProbe(Score.self, on: world)
    try await world.expect(no: Score.self, within: .milliseconds(10))
    Score(points: 2).scheduleQueue(after: .milliseconds(20), on: world)
    #expect(try await world.next(Score.self, within: .seconds(1)) == Score(points: 2))
    #expect(probe.events == [Score(points: 2)])
    #expect(Score.newest(on: world) == Score(points: 2))
  }

  @Test("next and expect(no:) throw on a central whose listener has ended", arguments: cores)
  func ended(core: EventCentral.Core) async {
    let make: [@Sendable () -> EventCentral] = [
      { EventCentral(core: core) }, { EventCentral(deterministic: 1, core: core) },
    ]
    for make in make {
      let (ended, drained) = (make(), make())
      #expect(await drained.drain())
      ended.listener.end()
      for world in [ended, drained] {
        let expectations: [@Sendable () async throws -> Void] = [
          { try await world.expect(no: Score.self, within: .seconds(120)) },
          { _ = try await world.next(Score.self, within: .seconds(120)) },
        ]
        for expectation in expectations {
          let error = await #expect(throws: EventExpectationError.self) { try await expectation() }
          #expect(error?.description.contains("and that of this central has ended") == true)
        }
      }
    }
  }

  @Test("expect(no:) throws if the listener of the central ends before its time is over", arguments: cores)
  func endedMeanwhile(core: EventCentral.Core) async {
    let world = EventCentral(deterministic: 1, core: core)
    let thread = EventThread(on: world)
    thread.addEventCallback { [unowned world] (_: Hit) in world.listener.end() }
    Hit(points: 1).queue(on: world)
    let error = await #expect(throws: EventExpectationError.self) {
      try await world.expect(no: Score.self, within: .milliseconds(10))
    }
    #expect(error?.description.contains("and that of this central has ended") == true)
  }

  @Test("D12: a probe on a central whose listener has ended traps")
  func deafProbe() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral()
      await world.drain()
      _ = EventProbe(Score.self, on: world)
    }
    expectMessage(result, "and that of this central has ended")
  }

  @Test("an expectation within no time looks at what is due already", arguments: cores)
  func noTime(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    let start = world.now
    for duration in [Duration.zero, .seconds(-1)] {
      Score().queue(on: world)
      try await world.expect(no: Score.self, within: duration)
      Hit.addListener(nil, executeOn: .listenerThread, once: true, on: world) { _ in Score(points: 7).queue(on: world) }
      Hit().queue(on: world)
      #expect(try await world.next(Score.self, within: duration) == Score(points: 7))
    }
    #expect(world.now == start)
  }

  @Test("an expectation in a task that is cancelled is neither met nor missed", .timeLimit(.minutes(5)), arguments: cores)
  func cancelled(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    let waits: [@Sendable () async throws -> Void] = [
      { try await world.expect(no: Score.self, within: .seconds(120)) },
      { _ = try await world.next(Score.self, within: .seconds(120)) },
    ]
    for wait in waits {
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        try await wait()
      }
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  struct SumQuery: Eventable { var factor = 1 }
  struct Refusal: Error {}

  private func summing(on world: EventCentral) -> EventWorker<Int> {
    EventWorker(on: world, state: 0) { on in
      on(Hit.self) { sum, hit in sum += hit.points }
      on.answer(SumQuery.self) { sum, query in
        if query.factor == 0 { throw Refusal() }
        return sum * query.factor
      }
    }
  }

  @Test("a worker answers in the runs of its central, after what was dispatched before", arguments: cores)
  func answer(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    let (start, worker) = (world.now, summing(on: world))
    Hit(points: 3).queue(on: world)
    Hit(points: 4).queue(on: world)
    let sum: Int = try await world.answer(to: SumQuery(factor: 2), within: .seconds(1))
    #expect(sum == 14)
    #expect(await (try? world.answer(to: SumQuery(factor: 3), within: .seconds(1))) ?? -1 == 21)
    #expect(world.now == start)
    await #expect(throws: Refusal.self) {
      try await world.answer(to: SumQuery(factor: 0), expecting: Int.self, within: .seconds(1))
    }
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await world.answer(to: SumQuery(), expecting: String.self, within: .seconds(1))
    }
    #expect(await worker.thread.drain())
  }

  @Test("D12: time that goes back traps")
  func advanceBack() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventCentral(deterministic: 1).advance(by: .seconds(-5))
    }
    expectMessage(result, "The time of a central goes on, never back, and this advance is by -5.0 seconds")
  }

  @Test("D12: handlers that dispatch for ever at one instant trap, where time would never go on")
  func endless() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      Hit.addListener(
        nil,
        { hit in
          // Not quite for ever, so that this test can fail.
          if hit.points < 10_000 { Hit(points: hit.points + 1).queue(on: world) }
        }, executeOn: .listenerThread, on: world)
      Hit().queue(on: world)
      _ = world.run(for: .seconds(1), most: 1_000, until: { false })
    }
    expectMessage(result, "and 1000 events were handled at one instant: have the handlers")
  }

  @Test("an answer that comes too late is one that nobody waits for", arguments: cores)
  func lateAnswer(core: EventCentral.Core) async throws {
    let world = EventCentral(deterministic: 1, core: core)
    let pump = EventPump(on: world)
    let answerer = SumQuery.answer(executeOn: .pump(pump), on: world) { query in query.factor }
    let failures = EventProbe(EventFailure.self, on: world)
    let start = world.now
    await #expect(throws: EventWaitError.timedOut(.seconds(1))) {
      try await world.answer(to: SumQuery(factor: 5), expecting: Int.self, within: .seconds(1))
    }
    #expect(world.now == start + .seconds(1))
    pump.run()
    world.run()
    #expect(failures.events.map { $0.lateAnswer as? Int } == [5])
    answerer.remove()
  }

  @Test("a worker with a thread of its own is asked, too", .timeLimit(.minutes(5)), arguments: cores)
  func answerOfAThread(core: EventCentral.Core) async throws {
    let world = EventCentral(core: core)
    let worker = summing(on: world)
    Hit(points: 3).queue(on: world)
    #expect(try await world.answer(to: SumQuery(), expecting: Int.self, within: .seconds(120)) == 3)
    #expect(await worker.thread.drain())
  }

  @Test("a central with threads is waited for", .timeLimit(.minutes(5)), arguments: cores)
  func threads(core: EventCentral.Core) async throws {
    let world = EventCentral(core: core)
    let referee = Referee(on: world)
    async let score = world.next(Score.self, within: .seconds(120))
    // The probe has to be there before the score.
    #expect(await yieldUntil { world.listener.listenerCount == 1 })
    Hit(points: 1).queue(on: world)
    #expect(try await score == Score(points: 1))
    try await world.expect(no: Score.self, within: .milliseconds(1))
    #expect(await referee.drain())
  }
}
