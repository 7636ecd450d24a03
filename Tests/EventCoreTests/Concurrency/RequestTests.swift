// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Request and reply")
struct RequestTests {
  struct PriceQuery: Eventable { var id: Int }
  struct Price: Equatable { var amount: Int }
  struct Unknown: Error, Equatable {}

  @Test("An answer comes back to its request", arguments: cores)
  func answers(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    PriceQuery.answer(on: central) { query in Price(amount: 10 * query.id) }
    // Another type of answer for the same queries is another question.
    PriceQuery.answer(on: central) { query async in "item \(query.id)" }
    for id in 0..<100 {
      #expect(try await central.request(PriceQuery(id: id), expecting: Price.self).amount == 10 * id)
    }
    let name: String = try await central.request(PriceQuery(id: 7))
    #expect(name == "item 7")
  }

  @Test("Where an Optional is wanted, the answer is what it wraps", arguments: cores)
  func optionals(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    PriceQuery.answer(on: central) { query in 10 * query.id }
    PriceQuery.answer(on: central) { query in query.id > 3 ? Optional("item \(query.id)") : nil }
    #expect(await (try? central.request(PriceQuery(id: 7))) ?? -1 == 70)
    let price: Int? = try await central.request(PriceQuery(id: 8), within: .seconds(1_000))
    #expect(price == 80)
    async let later: Int? = central.request(PriceQuery(id: 9))
    #expect(try await later == 90)
    // An answer that is an Optional is asked for by name, and is told from one of what it wraps.
    #expect(try await central.request(PriceQuery(id: 4), expecting: String?.self) == "item 4")
    #expect(try await central.request(PriceQuery(id: 3), expecting: String?.self) == nil)
    #expect(await (try? central.request(PriceQuery(id: 4), expecting: Int.self)) == 40)
    await #expect(throws: EventWaitError.nobodyAnswers) {
      let name: String? = try await central.request(PriceQuery(id: 4))
      return name
    }
    // Where none is wanted, nothing has changed.
    let sum = try await central.request(PriceQuery(id: 1)) + 1
    let list: [Int] = [try await central.request(PriceQuery(id: 1)), try await central.request(PriceQuery(id: 2))]
    #expect(sum == 11 && list == [10, 20])
  }

  @Test("Requests of many tasks get each its own answer", arguments: cores)
  func load(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    PriceQuery.answer(on: central, concurrency: .concurrent(3)) { query in
      if query.id % 3 == 0 { await Task.yield() }
      return Price(amount: query.id)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for id in 0..<500 {
            let price = try await central.request(PriceQuery(id: 1_000 * task + id), expecting: Price.self)
            #expect(price.amount == 1_000 * task + id)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("Each failure has an error of its own", arguments: cores)
  func failures(core: EventCentral.Core) async throws {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let ask = { @Sendable (limit: Duration?) in
      try await central.request(PriceQuery(id: 1), expecting: Price.self, within: limit)
    }
    await #expect(throws: EventWaitError.nobodyAnswers) { try await ask(nil) }

    let thrower = PriceQuery.answer(on: central) { _ -> Price in throw Unknown() }
    await #expect(throws: Unknown()) { try await ask(nil) }
    thrower.remove()

    // Somebody who takes the request, and never answers.
    let kept = Log<EventRequest<PriceQuery, Price>>()
    let keeper = EventRequest<PriceQuery, Price>.addListener(nil, executeOn: .listenerThread, on: central) {
      kept.append($0)
    }
    let late = Task { try await ask(.seconds(1)) }
    await offThePool { _ = kept.entries(atLeast: 1) }
    #expect(await yieldUntil { central.scheduleStatistics.pending == 1 })
    clock.advance(by: .seconds(1))
    // Counted before it is set: one that was set late is due now.
    #expect(
      await yieldUntil {
        clock.advance(by: .zero)
        return central.scheduleStatistics.pending == 0
      })
    await #expect(throws: EventWaitError.timedOut(.seconds(1))) { try await late.value }
    _ = kept.take()

    let cancelled = Task { try await ask(nil) }
    await offThePool { _ = kept.entries(atLeast: 1) }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }

    let dropped = Task { try await ask(nil) }
    await offThePool { _ = kept.entries(atLeast: 2) }
    _ = kept.take()
    await #expect(throws: EventWaitError.unanswered) { try await dropped.value }
    keeper.remove()
    await #expect(throws: EventWaitError.nobodyAnswers) { try await ask(nil) }
  }

  @Test("D12 whoever is full has refused the request, and is told from one that is not there", arguments: cores)
  func full(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central, mailbox: .bounded(1, whenFull: .refuse))
    pump.addEventCallback { (request: EventRequest<PriceQuery, Price>) in }
    let first = Task { try await central.request(PriceQuery(id: 1), expecting: Price.self) }
    #expect(await yieldUntil { pump.mailboxStatistics.waiting == 1 })
    await #expect(throws: EventWaitError.refused) {
      try await central.request(PriceQuery(id: 2), expecting: Price.self)
    }
    await #expect(throws: EventWaitError.refused) {
      try await central.requestAll(PriceQuery(id: 3), expecting: Price.self)
    }
    pump.run()
    await #expect(throws: EventWaitError.unanswered) { try await first.value }
  }

  @Test("requestAll gathers what has come: from all, or until the time is over", arguments: cores)
  func scatter(core: EventCentral.Core) async throws {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    #expect(try await central.requestAll(PriceQuery(id: 1), expecting: Price.self).isEmpty)
    for factor in 1...3 {
      PriceQuery.answer(on: central) { query in
        if factor == 3 { throw Unknown() }
        return Price(amount: factor * query.id)
      }
    }
    let all = try await central.requestAll(PriceQuery(id: 5), expecting: Price.self)
    #expect(Set(all.compactMap { try? $0.get().amount }) == [5, 10])
    #expect(all.count == 3)

    let kept = Log<EventRequest<PriceQuery, Price>>()
    EventRequest<PriceQuery, Price>.addListener(nil, executeOn: .listenerThread, on: central) { kept.append($0) }
    let task = Task { try await central.requestAll(PriceQuery(id: 5), expecting: Price.self, within: .seconds(1)) }
    await offThePool { _ = kept.entries(atLeast: 1) }
    #expect(await yieldUntil { central.scheduleStatistics.pending == 1 })
    // The three others answer by themselves; the fourth is late.
    let request = kept.entries[0]
    #expect(await yieldUntil { request.ticket.answerCount == 3 })
    clock.advance(by: .seconds(1))
    // Counted before it is set: one that was set late is due now.
    #expect(
      await yieldUntil {
        clock.advance(by: .zero)
        return central.scheduleStatistics.pending == 0
      })
    #expect(try await task.value.count == 3)

    // A requester that is cancelled gets no part of them.
    let cancelled = Task { try await central.requestAll(PriceQuery(id: 5), expecting: Price.self) }
    await offThePool { _ = kept.entries(atLeast: 2) }
    let other = kept.entries[1]
    #expect(await yieldUntil { other.ticket.answerCount == 3 })
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
  }

  /// How a request of the next test loses its answer.
  enum Loss: CaseIterable { case timesOut, isCancelled, timesOutScattered, isCancelledScattered }

  @Test("D12: an answer that nobody waits for is a failure that holds it", arguments: cores, Loss.allCases)
  func late(core: EventCentral.Core, loss: Loss) async throws {
    let clock = ManualClock()
    let (central, lifetime) = (EventCentral(core: core, clock: clock), Lifetime())
    var failures = central.failures.makeAsyncIterator()
    let (entered, leave) = (Gate(), Gate())
    let wait = { @Sendable in
      entered.open()
      leave.pass()
    }
    // Of each kind one: a closure, a closure that awaits, a worker.
    var worker: EventWorker<Lifetime>?
    let answerers: [() -> any EventListenerHandling] = [
      {
        PriceQuery.answer(on: central) { _ in
          wait()
          return lifetime.token()
        }
      },
      {
        PriceQuery.answer(on: central) { _ async in
          await offThePool { wait() }
          return lifetime.token()
        }
      },
      {
        var handle: (any EventListenerHandling)?
        worker = EventWorker(on: central, state: lifetime) { on in
          handle = on.answer(PriceQuery.self) { lifetime, _ in
            wait()
            return lifetime.token()
          }
        }
        return handle!
      },
      {
        PriceQuery.answer(on: central) { _ -> Lifetime.Token in
          wait()
          throw Unknown()
        }
      },
    ]
    for (kind, register) in answerers.enumerated() {
      let answerer = register()
      let limit: Duration? = loss == .timesOut || loss == .timesOutScattered ? .seconds(1) : nil
      let request = Task {
        switch loss {
        case .timesOut, .isCancelled:
          _ = try await central.request(PriceQuery(id: 1), expecting: Lifetime.Token.self, within: limit)
        case .timesOutScattered, .isCancelledScattered:
          let answers = try await central.requestAll(
            PriceQuery(id: 1), expecting: Lifetime.Token.self, within: limit)
          #expect(answers.isEmpty)
        }
      }
      await offThePool { entered.pass() }
      if limit == nil {
        request.cancel()
      } else {
        #expect(await yieldUntil { central.scheduleStatistics.pending == 1 })
        clock.advance(by: .seconds(1))
        #expect(
          await yieldUntil {
            clock.advance(by: .zero)
            return central.scheduleStatistics.pending == 0
          })
      }
      let result = await request.result
      leave.open()
      var failure = await failures.next()
      #expect(failure?.eventType == PriceQuery.self && failure?.receiver === answerer, "\(kind)")
      if kind < 3 {
        #expect(failure?.error as? EventWaitError == .late)
        #expect(failure?.lateAnswer is Lifetime.Token && lifetime.alive == 1)
      } else {
        #expect(failure?.error is Unknown && failure?.lateAnswer == nil)
      }
      failure = nil
      // The listener keeps no answer.
      #expect(await yieldUntil { lifetime.alive == 0 })
      switch loss {
      case .timesOut: #expect(throws: EventWaitError.timedOut(.seconds(1))) { try result.get() }
      case .timesOutScattered: #expect(throws: Never.self) { try result.get() }
      case .isCancelled, .isCancelledScattered: #expect(throws: CancellationError.self) { try result.get() }
      }
      answerer.remove()
    }
    #expect(await worker?.thread.drain() == true)
  }

  @Test("D12: what the first answer leaves behind, and what a cancelled requester had gathered, are failures", arguments: cores)
  func leftBehind(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    var failures = central.failures.makeAsyncIterator()
    let answerers = (0..<3).map { factor in
      PriceQuery.answer(on: central) { query in Price(amount: factor * query.id) }
    }
    let first = try await central.request(PriceQuery(id: 1), expecting: Price.self)
    var amounts = [first.amount]
    for _ in 0..<2 {
      let failure = try #require(await failures.next())
      #expect(failure.error as? EventWaitError == .answeredByAnother)
      amounts.append(try #require(failure.lateAnswer as? Price).amount)
    }
    #expect(amounts.sorted() == [0, 1, 2])

    let kept = Log<EventRequest<PriceQuery, Price>>()
    let keeper = EventRequest<PriceQuery, Price>.addListener(nil, executeOn: .listenerThread, on: central) {
      kept.append($0)
    }
    let cancelled = Task { try await central.requestAll(PriceQuery(id: 5), expecting: Price.self) }
    await offThePool { _ = kept.entries(atLeast: 1) }
    let request = kept.entries[0]
    #expect(await yieldUntil { request.ticket.answerCount == 3 })
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    var gathered: [Int] = []
    for _ in 0..<3 {
      let failure = try #require(await failures.next())
      #expect(failure.error as? EventWaitError == .late)
      #expect(answerers.contains { $0 === failure.receiver })
      gathered.append(try #require(failure.lateAnswer as? Price).amount)
    }
    #expect(gathered.sorted() == [0, 5, 10])
    // Nothing else has come.
    keeper.remove()
    request.ticket.give(.success(Price(amount: -1)), by: keeper)
    #expect(await failures.next()?.lateAnswer as? Price == Price(amount: -1))
  }

  actor Shop {
    var asked = 0
    func open(on central: EventCentral) {
      PriceQuery.answer(executeOn: .requesterThread, on: central) { [self] query in
        assumeIsolated { $0.asked += 1 }
        return Price(amount: query.id)
      }
    }
  }

  @Test("With .requesterThread an actor answers on itself", arguments: cores)
  func onActor(core: EventCentral.Core) async throws {
    let (central, shop) = (EventCentral(core: core), Shop())
    await shop.open(on: central)
    #expect(try await central.request(PriceQuery(id: 3), expecting: Price.self).amount == 3)
    #expect(await shop.asked == 1)
    central.listener.end()
  }

  @Test("D9: an answerer that ends with its backlog leaves no requester waiting", arguments: cores)
  func ends(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (entered, leave) = (Gate(), Gate())
    let answerer = PriceQuery.answer(on: central) { query in
      entered.open()
      await offThePool { leave.pass() }
      return Price(amount: query.id)
    }
    let first = Task { try await central.request(PriceQuery(id: 1), expecting: Price.self) }
    await offThePool { entered.pass() }
    let second = Task { try await central.request(PriceQuery(id: 2), expecting: Price.self) }
    #expect(await yieldUntil { answerer.waitingEventCount == 1 })
    answerer.remove()
    leave.open()
    #expect(await first.result.map(\.amount).mapError { _ in Unknown() } == .success(1))
    await #expect(throws: EventWaitError.unanswered) { try await second.value }
  }
}
