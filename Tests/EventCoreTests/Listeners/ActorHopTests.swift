// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

// test                                   the actor's executor, which keeps its jobs
// dispatches ───────────────────────────► is given one job, by this thread: nothing ran in between
// dispatches more                         is given none: the one on its way handles them
// has it run what it kept ──────────────► handles at most a batch; is given one more for the rest
//
// the actor, in one of its jobs           its executor
// dispatches ───────────────────────────► is given one job, by this same thread: nothing ran inside
// dispatches more                         is given none
// the job ends ─────────────────────────► runs the next one, which handles them
@Suite("A dispatch goes straight to the actor")
struct ActorHopTests {
  actor Model {
    let executor = HeldExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    let log = Log<Int>()

    func append(_ number: Int) {
      preconditionIsolated()
      log.append(number)
    }

    func register(_ form: Form, on central: EventCentral) -> any EventListenerHandling {
      switch form {
      case .isolation:
        Ping.addListener(nil, { self.append($0.number) }, on: central)
      case .byDefault:
        Ping.addListener(self, { self.append($0.number) }, on: central)
      case .weak:
        Ping.addListener(
          self, { (self: isolated Model, event) in self.append(event.number) }, on: central)
      }
    }

    /// Registers a listener that dispatches the next number for each, up to a limit.
    func relay(to limit: Int, on central: EventCentral) -> any EventListenerHandling {
      Ping.addListener(
        self,
        { (self: isolated Model, event) in
          self.append(event.number)
          if event.number < limit { Ping(number: event.number + 1).queue(on: central) }
          self.append(-event.number)
        }, on: central)
    }

    /// What had happened when a dispatch on the actor itself returned.
    struct Dispatched {
      let handled: [Int]
      let givers: [UInt]
      let thread: UInt
    }

    func dispatch(_ numbers: Range<Int>, on central: EventCentral) -> Dispatched {
      executor.hold()
      _ = executor.takeGivers()
      for number in numbers { Ping(number: number).queue(on: central) }
      return Dispatched(
        handled: log.entries, givers: executor.takeGivers(), thread: currentThread())
    }
  }

  enum Form: CaseIterable {
    case isolation, byDefault, weak
  }

  @Test(
    "the dispatching thread gives the actor one job for all that waits", arguments: cores,
    Form.allCases)
  func oneJob(core: EventCentral.Core, form: Form) async {
    let (central, model) = (EventCentral(core: core), Model())
    let handle = await model.register(form, on: central)
    await offThePool {
      let executor = model.executor
      executor.hold()
      _ = executor.takeGivers()
      for round in 1...3 {
        for number in 0..<10 { Ping(number: number).queue(on: central) }
        #expect(executor.takeGivers() == [currentThread()])
        #expect(executor.runKept() == 1)
        #expect(model.log.take() == Array(0..<10), "round \(round)")
        // Nothing waits, and nothing is on its way.
        #expect(executor.takeGivers() == [])
      }
      handle.remove()
      _ = executor.runKept()
      executor.letGo()
    }
  }

  @Test(
    "D7: a dispatch on the actor itself calls no handler: the actor's next job does",
    arguments: cores, Form.allCases)
  func dispatchOnTheActor(core: EventCentral.Core, form: Form) async {
    let (central, model) = (EventCentral(core: core), Model())
    let handle = await model.register(form, on: central)
    for round in 1...3 {
      let dispatched = await model.dispatch(0..<10, on: central)
      #expect(dispatched.handled == [], "round \(round)")
      #expect(dispatched.givers == [dispatched.thread], "round \(round)")
      await offThePool {
        #expect(model.executor.runKept() == 1)
        #expect(model.log.take() == Array(0..<10), "round \(round)")
        #expect(model.executor.takeGivers() == [])
        model.executor.letGo()
      }
    }
    handle.remove()
  }

  @Test(
    "D7: what a handler on the actor dispatches is handled after it, in the same job",
    arguments: cores)
  func handlerDispatches(core: EventCentral.Core) async {
    let (central, model) = (EventCentral(core: core), Model())
    let handle = await model.relay(to: 20, on: central)
    await offThePool {
      let executor = model.executor
      executor.hold()
      Ping(number: 1).queue(on: central)
      _ = executor.takeGivers()
      #expect(executor.runKept() == 1)
      #expect(model.log.entries == (1...20).flatMap { [$0, -$0] })
      #expect(executor.takeGivers() == [])
      handle.remove()
      _ = executor.runKept()
      executor.letGo()
    }
  }

  @Test(
    "the actor gets a job for each batch of 64, so that others have their turn", arguments: cores,
    [63, 64, 65, 192])
  func batches(core: EventCentral.Core, count: Int) async {
    let (central, model) = (EventCentral(core: core), Model())
    let handle = await model.register(.weak, on: central)
    await offThePool {
      let executor = model.executor
      executor.hold()
      for number in 0..<count { Ping(number: number).queue(on: central) }
      var jobs = 0
      while model.log.entries.count < count {
        #expect(executor.runKept() == 1)
        jobs += 1
        #expect(model.log.entries.count == min(count, 64 * jobs))
      }
      #expect(model.log.entries == Array(0..<count))
      handle.remove()
      _ = executor.runKept()
      executor.letGo()
    }
  }

  /// Runs an actor on an event thread: its jobs are events.
  final class ThreadExecutor: SerialExecutor {
    private struct Job: Eventable { let job: UnownedJob }
    private let thread: EventThread

    init(on central: EventCentral) {
      thread = EventThread(on: central)
      thread.addEventCallback { [weak self] (event: Job) in
        if let self { event.job.runSynchronously(on: asUnownedSerialExecutor()) }
      }
    }

    func enqueue(_ job: consuming ExecutorJob) {
      thread.queueEvent(Job(job: UnownedJob(job)))
    }
  }

  actor Hosted {
    let executor: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    let log = Log<Int>()

    init(on central: EventCentral) { executor = ThreadExecutor(on: central) }

    func register(on central: EventCentral) -> any EventListenerHandling {
      Ping.addListener(
        self, { (self: isolated Hosted, event) in self.log.append(event.number) }, on: central)
    }
  }

  @Test("D7: an executor may dispatch an event to take its job", arguments: cores, [1, 10])
  func executorThatDispatches(core: EventCentral.Core, batch: Int) async {
    let central = EventCentral(core: core)
    let actors = (0..<3).map { _ in Hosted(on: central) }
    let log = Log<Int>()
    let thread = EventThread(on: central)
    for actor in actors[..<2] { _ = await actor.register(on: central) }
    thread.addEventCallback { (event: Ping) in log.append(event.number) }
    _ = await actors[2].register(on: central)
    await offThePool {
      for first in stride(from: 0, to: 1000, by: batch) {
        if batch == 1 {
          Ping(number: first).queue(on: central)
        } else {
          (first..<first + batch).map { Ping(number: $0) }.queue(on: central)
        }
      }
      for log in actors.map(\.log) + [log] {
        #expect(log.entries(atLeast: 1000) == Array(0..<1000))
      }
    }
    for actor in actors { withExtendedLifetime(actor) {} }
    withExtendedLifetime(thread) {}
  }

  @Test("D9: a job that is on its way keeps the actor, and nothing else does", arguments: cores)
  func retained(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let executor: HeldExecutor
    weak var weakModel: Model?
    let log: Log<Int>
    do {
      let model = Model()
      _ = await model.register(.weak, on: central)
      (executor, log, weakModel) = (model.executor, model.log, model)
      executor.hold()
      Ping(number: 1).queue(on: central)
    }
    #expect(weakModel != nil)
    await offThePool { #expect(executor.runKept() == 1) }
    #expect(log.entries == [1])
    #expect(await yieldUntil { weakModel == nil })
    await offThePool { #expect(waitUntil { Ping(number: 2).queue(on: central) == 0 }) }
    #expect(log.entries == [1])
    executor.letGo()
  }
}
