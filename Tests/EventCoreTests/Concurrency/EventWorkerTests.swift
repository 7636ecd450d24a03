// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("EventWorker: a thread that owns its state; tokens of listeners")
struct EventWorkerTests {
  /// State that is not Sendable.
  final class Book {
    let token: Lifetime.Token
    var numbers: [Int] = []
    init(_ token: Lifetime.Token) { self.token = token }
  }

  @Test("Handlers share the state, in the order of D1 to D3; it is freed with the thread", arguments: cores)
  func state(core: EventCentral.Core) async {
    let (central, lifetime, log) = (EventCentral(core: core), Lifetime(), Log<[Int]>())
    var worker: EventWorker<Book>? = EventWorker(on: central, state: Book(lifetime.token())) { on in
      on(Ping.self) { book, ping in book.numbers.append(ping.number) }
      on(Pong.self) { book, _ in
        log.append(book.numbers)
        book.numbers = []
      }
      on.answer(SumQuery.self) { book, query in query.factor * book.numbers.reduce(0, +) }
    }
    let held = HeldThread(worker!.thread)
    for number in 0..<100 { Ping(number: number).queue(on: central) }
    Pong().queue(on: central)
    Ping(number: -1).stack(on: central)
    held.letGo()
    await offThePool { #expect(log.entries(atLeast: 1) == [[-1] + Array(0..<100)]) }
    #expect(lifetime.alive == 1)
    worker = nil
    #expect(await yieldUntil { lifetime.alive == 0 })
    #expect(Ping().queue(on: central) == 0)
  }

  @Test("D4: a bounded worker refuses what finds no place", arguments: cores)
  func bounded(core: EventCentral.Core) async {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    let worker = EventWorker(on: central, state: 0, mailbox: .bounded(2, whenFull: .refuse)) { on in
      on(Ping.self) { sum, ping in
        sum += ping.number
        log.append(sum)
      }
    }
    let held = HeldThread(worker.thread)
    #expect((1...4).map { Ping(number: $0).queue(on: central) } == [1, 1, 0, 0])
    held.letGo()
    await offThePool { #expect(log.entries(atLeast: 2) == [1, 3]) }
    #expect(worker.thread.mailboxStatistics.refused == 2)
  }

  @Test("It tells the name that it was given", arguments: cores)
  func name(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let named = EventWorker(on: central, state: 0, name: "sensors") { on in on(Ping.self) { _, _ in } }
    let other = EventWorker(on: central, state: 0) { on in on(Ping.self) { _, _ in } }
    #expect([named.receiverName, other.receiverName] == ["sensors", "EventWorker"])
    #expect(central.statistics.receivers.map(\.name) == ["sensors", "EventWorker"])
    for worker in [named, other] { #expect(await worker.thread.drain()) }
  }

  /// A query of the next test, and what its handler may throw.
  struct SumQuery: Eventable { var factor: Int }
  struct Overflow: Error, Equatable {}

  @Test("D1: a worker answers queries with its state, among its other events; errors come back", arguments: cores)
  func answers(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    let worker = EventWorker(on: central, state: 0) { on in
      on(Ping.self) { sum, ping in sum += ping.number }
      on.answer(SumQuery.self) { sum, query in
        let (product, overflows) = sum.multipliedReportingOverflow(by: query.factor)
        if overflows { throw Overflow() }
        return product
      }
    }
    for number in 1...10 {
      Ping(number: number).queue(on: central)
      let sum = number * (number + 1) / 2
      #expect(try await central.request(SumQuery(factor: 2), expecting: Int.self, within: .seconds(30)) == 2 * sum)
    }
    await #expect(throws: Overflow()) {
      try await central.request(SumQuery(factor: .max), expecting: Int.self, within: .seconds(30))
    }
    worker.thread.cancel()
    await #expect(throws: (any Error).self) {
      try await central.request(SumQuery(factor: 1), expecting: Int.self, within: .seconds(30))
    }
  }

  @Test("A value as state is changed in place", arguments: cores)
  func value(core: EventCentral.Core) async {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    let worker = EventWorker(on: central, state: 0) { on in
      on(Ping.self) { sum, ping in sum += ping.number }
      on(Pong.self, interestedIn: .latestOnly) { sum, _ in log.append(sum) }
    }
    for number in 1...1_000 { Ping(number: number).queue(on: central) }
    Pong().queue(priority: .lowest, on: central)
    await offThePool { #expect(log.entries(atLeast: 1) == [500_500]) }
    await worker.thread.drain()
  }

  @Test("D9: a listener ends with its token", arguments: cores)
  func token(core: EventCentral.Core) async {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    var token: EventListenerToken? = Ping.listen(executeOn: .listenerThread, on: central) { log.append($0.number) }
    Ping(number: 1).queue(on: central)
    await offThePool { #expect(log.entries(atLeast: 1) == [1]) }
    #expect(token?.handle.isActive == true)
    token = nil
    #expect(Ping(number: 2).queue(on: central) == 0)
    let other = Ping.listen(executeOn: .listenerThread, on: central) { _ in }
    #expect(other.remove() && !other.remove())
  }
}
