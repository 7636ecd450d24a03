// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Requests with a limit, and the end of their central")
struct RequestLimitTests {
  struct PriceQuery: Eventable { var id: Int }
  struct Price: Equatable { var amount: Int }
  struct Tick: Eventable {}
  struct Note: Eventable {}

  @Test("D12: after the end of a central nobody is asked within a limit, which nothing would keep", arguments: cores)
  func after(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    let (thread, asked) = (EventThread(on: central), Log<Int>())
    PriceQuery.answer(on: thread) { query in
      asked.append(query.id)
      return Price(amount: query.id)
    }
    #expect(await central.drain())
    await #expect(throws: EventWaitError.sourceEnded) {
      try await central.request(PriceQuery(id: 1), expecting: Price.self, within: .seconds(1_000))
    }
    await #expect(throws: EventWaitError.sourceEnded) {
      try await central.requestAll(PriceQuery(id: 2), expecting: Price.self, within: .seconds(1_000))
    }
    // The thread lives on, and answers whoever sets no limit.
    #expect(try await central.request(PriceQuery(id: 3), expecting: Price.self) == Price(amount: 3))
    #expect(try await central.requestAll(PriceQuery(id: 4), expecting: Price.self).count == 1)
    #expect(await thread.drain())
    #expect(asked.entries == [3, 4])
  }

  @Test("D12: the end of a central ends the requests that wait with a limit, and says so", arguments: cores)
  func during(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    let (thread, kept) = (EventThread(on: central), Log<EventRequest<PriceQuery, Price>>())
    // Somebody who takes the request, and has not answered yet.
    EventRequest<PriceQuery, Price>.addListener(nil, executeOn: .listenerThread, on: thread) { kept.append($0) }
    let one = Task {
      try await central.request(PriceQuery(id: 1), expecting: Price.self, within: .seconds(1_000))
    }
    await offThePool { _ = kept.entries(atLeast: 1) }
    let other = EventThread(on: central)
    PriceQuery.answer(on: other) { query in Price(amount: query.id) }
    let all = Task {
      try await central.requestAll(PriceQuery(id: 2), expecting: Price.self, within: .seconds(1_000))
    }
    await offThePool { _ = kept.entries(atLeast: 2) }
    let requests = kept.entries
    #expect(await yieldUntil { requests[1].ticket.answerCount == 1 && central.scheduleStatistics.pending == 2 })
    #expect(await central.drain())
    await #expect(throws: EventWaitError.sourceEnded) { try await one.value }
    // As at the limit, what has come is the answer.
    #expect(try await all.value.map { try $0.get() } == [Price(amount: 2)])
    for thread in [thread, other] { #expect(await thread.drain()) }
  }

  @Test("D10: a central that drains answers what waits within its limit, and dispatches no schedule", arguments: cores)
  func drained(core: EventCentral.Core) async throws {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let (thread, ticks, asked) = (EventThread(on: central), Log<Int>(), Log<Int>())
    Tick.addListener(nil, { _ in ticks.append(0) }, executeOn: .listenerThread, on: thread)
    let schedule = Tick().scheduleQueue(every: .seconds(1), on: central)
    Note.addListener(nil, { _ in }, executeOn: .listenerThread, on: central)
    let (news, signal) = AsyncStream.makeStream(of: Void.self)
    PriceQuery.answer(on: central, concurrency: .serial) { query in
      asked.append(query.id)
      if asked.entries.count == 1 { for await _ in news { break } }
      return Price(amount: query.id)
    }
    let requests = (0..<3).map { id in
      Task { try await central.request(PriceQuery(id: id), expecting: Price.self, within: .seconds(1_000)) }
    }
    await offThePool { _ = asked.entries(atLeast: 1) }
    #expect(await yieldUntil { central.mailboxStatistics.accepted == 3 })
    let drain = Task { await central.drain() }
    // The drain has begun when the central's listeners accept nothing more.
    #expect(await yieldUntil { Note().queue(on: central) == 0 })
    clock.advance(by: .seconds(2))
    signal.yield()
    #expect(await drain.value)
    for (id, request) in requests.enumerated() {
      let price = try await request.value
      #expect(price == Price(amount: id))
    }
    #expect(await thread.drain())
    #expect(ticks.entries.isEmpty)
    #expect(await yieldUntil { schedule.state == .dropped })
  }
}
