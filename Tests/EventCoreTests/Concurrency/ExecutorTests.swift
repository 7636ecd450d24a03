// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
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

  /// An actor that calls another one of its executor.
  actor Caller {
    let other: Counter
    var turns = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { other.unownedExecutor }

    init(_ other: Counter) { self.other = other }

    func call(_ count: Int) async {
      // Something of its own each time, or the compiler would leave the way back out.
      for turn in 0..<count {
        turns += 1
        await other.add(turn)
      }
      turns += 1
    }
    func callInATask(_ count: Int, preferring executor: (any TaskExecutor)?) async {
      await Task(executorPreference: executor) { await self.call(count) }.value
    }
  }

  enum Preference: CaseIterable { case none, outside, insideTheActor }

  @Test("A call from one actor of a thread to another is no job", arguments: cores, Preference.allCases)
  func inline(core: EventCentral.Core, preference: Preference) async {
    let thread = EventThread(on: EventCentral(core: core))
    await expectNoJobs(Caller(Counter(thread)), preference, thread) { thread.statistics.delivered }
    await thread.drain()
  }

  @Test("A call from one actor of a pump to another is no job", arguments: cores, Preference.allCases)
  func inlineInPump(core: EventCentral.Core, preference: Preference) async {
    let central = EventCentral(core: core)
    let place = await onItsThread(central)
    await expectNoJobs(Caller(Counter(place)), preference, place) { place.consumer.statistics.delivered }
    End().queue(on: central)
  }

  private func expectNoJobs(
    _ caller: Caller, _ preference: Preference, _ executor: any TaskExecutor, _ jobs: () -> UInt64
  ) async {
    switch preference {
    case .none: await caller.call(1_000)
    case .outside: await Task(executorPreference: executor) { await caller.call(1_000) }.value
    case .insideTheActor: await caller.callInATask(1_000, preferring: executor)
    }
    #expect(await caller.other.values == Array(0..<1_000))
    #expect(await caller.turns == 1_001)
    // The ways in and out, one that shows what the task prefers, and those of the lines above.
    #expect(jobs() < 10)
  }

  @Test("The tasks of many preferences share a thread, and none is lost or out of turn", arguments: cores)
  func mixed(core: EventCentral.Core) async {
    let (thread, second) = (EventThread(on: EventCentral(core: core)), EventThread(on: EventCentral(core: core)))
    let (counter, elsewhere) = (Counter(thread), Counter(second))
    let caller = Caller(counter)
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<30 {
        // The third kind prefers a thread that is not the actor's.
        group.addTask(executorPreference: [nil, thread, second][task % 3]) {
          for value in 0..<20 {
            await counter.add(100 * task + value)
            await elsewhere.add(100 * task + value)
            await caller.call(1)
            await Task.yield()
          }
        }
      }
    }
    let (values, others) = (await counter.values, await elsewhere.values)
    #expect(values.count == 1_200 && others.count == 600)
    for task in 1..<30 {
      let expected = (0..<20).map { 100 * task + $0 }
      #expect(values.filter { $0 / 100 == task } == expected)
      #expect(others.filter { $0 / 100 == task } == expected)
    }
    #expect(await caller.turns == 1_200)
    await thread.drain()
    await second.drain()
  }

  @Test("D1, D2: a job of a pump is an event of normal priority", arguments: cores)
  func orderInPump(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let counter = Counter(pump.place)
    pump.addEventCallback { (ping: Ping) in counter.assumeIsolated { $0.values.append(ping.number) } }
    Ping(number: 3).queue(priority: .low, on: central)
    Ping(number: 1).queue(on: central)
    let task = Task { await counter.add(2) }
    #expect(await yieldUntil { pump.eventCount == 3 })
    Ping(number: 0).queue(priority: .high, on: central)
    pump.run()
    await task.value
    // Their job runs after the pump's end.
    pump.cancel()
    pump.run()
    #expect(await counter.values == [0, 1, 2, 3])
  }

  @Test("Jobs that a pump leaves run after its end, on the executor", arguments: cores)
  func endedPump(core: EventCentral.Core) async {
    let pump = EventPump(on: EventCentral(core: core))
    let (place, counter) = (pump.place, Counter(pump.place))
    let waiting = [
      Task { await counter.add(1) }, Task(executorPreference: place) { await counter.add(2) },
    ]
    #expect(await yieldUntil { pump.eventCount == 2 })
    pump.cancel()
    pump.run()
    for task in waiting { await task.value }
    await Task(executorPreference: place) { await counter.add(3) }.value
    #expect(await counter.values.sorted() == [1, 2, 3])
    #expect(await counter.isOnExecutor())
  }

  @Test("Isolation may be assumed in callbacks, other actors, and tasks that prefer the thread", arguments: cores)
  func assumed(core: EventCentral.Core) async {
    let thread = EventThread(on: EventCentral(core: core))
    let counter = Counter(thread)
    let gate = Gate()
    thread.addEventCallback { (ping: Ping) in
      counter.assumeIsolated { $0.values.append(1) }
      gate.open()
    }
    Ping(number: 1).queue(on: thread.central)
    await offThePool { gate.pass() }
    await Caller(counter).assume()
    await Task(executorPreference: thread) { assume(counter) }.value
    #expect(await counter.isOnExecutor())
    #expect(await counter.values == [1, 2, 3])
    await thread.drain()

    // A task may not do so itself, but a function that it calls may.
    func assume(_ counter: Counter) { counter.assumeIsolated { $0.values.append(3) } }
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
    // Also where the thread was a part of a deterministic central.
    let other = UIEventThread(on: EventCentral(deterministic: 1, core: core))
    let otherCounter = Counter(other)
    other.cancel()
    #expect(await otherCounter.isOnMain())
  }

  @Test("D10: jobs that a thread leaves are not lost, and its drain is true", arguments: cores)
  func drainBesideJobs(core: EventCentral.Core) async {
    let thread = EventThread(on: EventCentral(core: core))
    let (entered, leave, log) = (Gate(), Gate(), Log<Int>())
    thread.addEventCallback { (_: Ping) in
      entered.open()
      leave.pass()
    }
    thread.queueEvent(Ping())
    await offThePool { entered.pass() }
    let job = Task(executorPreference: thread) { log.append(1) }
    #expect(await yieldUntil { thread.eventCount == 1 })
    thread.cancel()
    leave.open()
    #expect(await thread.drain())
    await job.value
    #expect(log.entries == [1])
  }

  /// A listener on a queue, which hears what is sent to the source alone, and accepts jobs, since it is greeted.
  private func listenElsewhere(_ source: some EventListenable) -> any EventListenerHandling {
    Ping.addListener(nil, executeOn: .dispatchQueue(DispatchQueue(label: "elsewhere")), on: source) { _ in }
  }

  @Test("D4: the jobs of a thread are its alone, whoever listens on it", arguments: cores)
  func jobsOfThread(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    Ping.keepNewest(on: central)
    Ping(number: 1).queue(on: central)
    let thread = EventThread(on: central)
    let elsewhere = listenElsewhere(thread)
    let counter = Counter(thread)
    for value in 0..<500 { await counter.add(value) }
    #expect(await counter.values == Array(0..<500))
    elsewhere.remove()
  }

  @Test("D4: the jobs and the greetings of a pump are its alone, whoever listens on its place", arguments: cores)
  func jobsOfPump(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    Ping.keepNewest(on: central)
    Ping(number: 1).queue(on: central)
    let place = await onItsThread(central)
    let elsewhere = listenElsewhere(place)
    let log = Log<UInt>()
    let listener = Ping.addListener(nil, executeOn: .pump(place), on: place) { _ in log.append(currentThread()) }
    let counter = Counter(place)
    for value in 0..<500 { await counter.add(value) }
    await counter.threads(log)
    #expect(await counter.values == Array(0..<500))
    #expect(log.entries.count == 2 && Set(log.entries).count == 1, "The greeting, and the actor's thread.")
    elsewhere.remove()
    listener.remove()
    End().queue(on: central)
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

extension ExecutorTests.Caller {
  func assume() { other.assumeIsolated { $0.values.append(2) } }
}
