// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Actors and tasks on event threads and pumps")
struct ExecutorTests {
  actor Counter {
    let executor: any SerialExecutor
    var values: [Int] = []
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ executor: any SerialExecutor) { self.executor = executor }

    func add(_ value: Int) { values.append(value) }
    func addAndWait(_ value: Int, _ entered: Gate, _ leave: Gate) {
      entered.open()
      leave.pass()
      values.append(value)
    }
    func threads(_ log: Log<UInt>) { log.append(currentThread()) }
  }

  @Test("An actor runs on the thread, in turn with its callbacks, which may assume its isolation", arguments: cores)
  func actor(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (thread, log) = (EventThread(on: central), Log<UInt>())
    let counter = Counter(thread)
    thread.addEventCallback { (ping: Ping) in
      log.append(currentThread())
      counter.assumeIsolated { $0.values.append(ping.number) }
    }
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for value in 0..<250 {
            await counter.add(1_000 * task + value)
            Ping(number: -1).queue(on: central)
          }
        }
      }
    }
    await counter.threads(log)
    await thread.drain()
    #expect(Set(log.entries).count == 1)
    let values = await counter.values
    #expect(values.count == 2_000)
    for task in 0..<4 {
      #expect(values.filter { $0 / 1_000 == task && $0 >= 0 } == (0..<250).map { 1_000 * task + $0 })
    }
  }

  @Test("D1, D2: a job is an event of normal priority", arguments: cores)
  func order(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let counter = Counter(thread)
    thread.addEventCallback { (ping: Ping) in counter.assumeIsolated { $0.values.append(ping.number) } }
    let held = HeldThread(thread)
    Ping(number: 3).queue(priority: .low, on: central)
    Ping(number: 1).queue(on: central)
    let task = Task { await counter.add(2) }
    #expect(await yieldUntil { thread.eventCount == 3 })
    Ping(number: 0).queue(priority: .high, on: central)
    held.letGo()
    await task.value
    await thread.drain()
    #expect(await counter.values == [0, 1, 2, 3])
  }

  @Test("A task may prefer the thread", arguments: cores)
  func task(core: EventCentral.Core) async {
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<UInt>()
    await Counter(thread).threads(log)
    await Task(executorPreference: thread) { log.append(currentThread()) }.value
    #expect(Set(log.entries).count == 1)
  }

  @Test("An actor runs inside the runs of a pump", arguments: cores)
  func pump(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let place = await onItsThread(central)
    let counter = Counter(place)
    await counter.add(1)
    await counter.add(2)
    #expect(await counter.values == [1, 2])
    End().queue(on: central)
  }

  /// A pump whose loop runs on a thread of its own until `End` comes.
  private func onItsThread(_ central: EventCentral) async -> EventPumpPlace {
    // By a log and not by a continuation, whose order the thread sanitizer does not see.
    let places = Log<EventPumpPlace>()
    runThread {
      let pump = EventPump(on: central)
      var isOver = false
      pump.addEventCallback { (_: End) in isOver = true }
      places.append(pump.place)
      while !isOver {
        pump.wait()
        pump.run()
      }
      pump.cancel()
      pump.run()
    }
    await offThePool { _ = places.entries(atLeast: 1) }
    return places.entries[0]
  }
  struct End: Eventable {}

  @Test("No job is lost: those that a thread leaves, and later ones, run after its end, one at a time", arguments: cores)
  func ended(core: EventCentral.Core) async {
    let thread = EventThread(on: EventCentral(core: core))
    let counter = Counter(thread)
    let (entered, leave) = (Gate(), Gate())
    let first = Task { await counter.addAndWait(1, entered, leave) }
    await offThePool { entered.pass() }
    let second = Task { await counter.add(2) }
    #expect(await yieldUntil { thread.eventCount == 1 })
    thread.cancel()
    // The first job still runs: neither of these may begin.
    let third = Task { await counter.add(3) }
    #expect(await yieldUntil { thread.consumer.heir.value != nil })
    leave.open()
    await first.value
    await second.value
    await third.value
    #expect(await counter.values.first == 1)
    #expect(await counter.values.sorted() == [1, 2, 3])
    #expect(await counter.isOnExecutor())
  }

  @Test("Jobs that a UIEventThread leaves run on the main thread", arguments: cores)
  func endedOnMain(core: EventCentral.Core) async {
    let thread = UIEventThread(on: EventCentral(core: core))
    let counter = Counter(thread)
    #expect(await counter.isOnMain())
    thread.cancel()
    #expect(await counter.isOnMain())
  }

  @Test("A pump has one place")
  func onePlace() {
    let pump = EventPump(on: EventCentral())
    #expect(pump.place === pump.place)
  }

  @Test("D12: assuming an actor's isolation elsewhere traps and says what to do")
  func elsewhere() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let counter = Counter(EventThread(on: EventCentral()))
      func assume() { counter.assumeIsolated { $0.values.append(1) } }
      assume()
    }
    #expect(result != nil)
  }
}

extension ExecutorTests.Counter {
  func isOnMain() -> Bool { MainQueue.isCurrent }
  func isOnExecutor() -> Bool {
    assertIsolated()
    return true
  }
}
