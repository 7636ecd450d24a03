// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("The drain of listeners")
struct ListenerDrainTests {
  struct Hit: Eventable { var number = 0 }

  /// Where listeners may run, apart from event threads and actors.
  static let places: [ExecuteEventOn] = [
    .listenerThread, .dispatchQueue(DispatchQueue(label: "drain")),
    .dispatchQueue(DispatchQueue(label: "drain, side by side", attributes: .concurrent)), .taskThread,
  ]

  @Test("what waits is handled first, in order, in each place, and nothing later (D10)", arguments: cores)
  func places(core: EventCentral.Core) async {
    for place in Self.places {
      let world = EventCentral(core: core)
      let listener = EventListener(on: world)
      let (numbers, began, gate) = (Log<Int>(), Gate(), Gate())
      Hit.addListener(
        nil,
        { hit in
          numbers.append(hit.number, heldUpInFirst: gate, began)
          // Not for those that drain.
          if hit.number == 1 { Hit(number: -1).queue(on: world) }
        }, executeOn: place, on: listener)
      (0..<100).map(Hit.init).queue(on: world)
      await offThePool { began.pass() }
      async let isDrained = listener.drain()
      // The drain has begun when the listener accepts nothing more.
      #expect(await yieldUntil { Hit(number: -2).queue(on: world) == 0 })
      gate.open()
      #expect(await isDrained)
      #expect(numbers.entries.filter { $0 >= 0 } == Array(0..<100))
      #expect(!numbers.entries.contains(-1))
      #expect(listener.eventCount == 0 && listener.statistics.cancelled == 0)
      #expect(!Hit.addListener(nil, { _ in }, executeOn: place, on: listener).isActive)
    }
  }

  @Test("async listeners begin the calls for what waits, and the drain waits for the last to return", arguments: cores)
  func asynchronous(core: EventCentral.Core) async {
    for concurrency in [EventConcurrency.serial, .concurrent(3)] {
      let world = EventCentral(core: core)
      let (began, returned) = (Log<Int>(), Log<Int>())
      let (news, signal) = AsyncStream.makeStream(of: Void.self)
      Hit.addListener(nil, concurrency: concurrency, on: world) { hit in
        began.append(hit.number)
        if hit.number == 0 { for await _ in news { break } }
        await Task.yield()
        returned.append(hit.number)
      }
      (0..<50).map(Hit.init).queue(on: world)
      #expect(await yieldUntil { began.entries.contains(0) })
      async let isDrained = world.drain()
      #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
      signal.yield()
      #expect(await isDrained)
      #expect(returned.entries.filter { $0 >= 0 }.sorted() == Array(0..<50))
    }
  }

  @Test("D12: what handlers throw during a drain comes to a listener that is drained later", arguments: cores)
  func failures(core: EventCentral.Core) async {
    struct Refused: Error {}
    let (world, log) = (EventCentral(core: core), Log<String>())
    let (news, signal) = AsyncStream.makeStream(of: Void.self)
    let own = EventListener(on: world)
    EventFailure.addListener(nil, executeOn: .listenerThread, on: own) { _ in log.append("listener") }
    let failures = EventFailure.events(on: own)
    let loop = Task { for await _ in failures { log.append("sequence") } }
    let handle = Hit.addListener(nil, on: world) { hit in
      guard hit.number >= 0 else { return }
      if hit.number == 0 { for await _ in news { break } }
      throw Refused()
    }
    (0..<3).map { Hit(number: $0) }.queue(on: world)
    async let isDrained = world.drain()
    // The drain has begun when the central accepts nothing more.
    #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
    signal.yield()
    #expect(await isDrained)
    #expect(await own.drain())
    await loop.value
    #expect(!handle.isActive)
    #expect(log.entries.sorted() == Array(repeating: "listener", count: 3) + Array(repeating: "sequence", count: 3))
  }

  @Test("a drain waits for the handlers of removed listeners, too, in each place, suspended or not", arguments: cores)
  func removed(core: EventCentral.Core) async {
    for place in Self.places + [nil] {
      let world = EventCentral(core: core)
      let (log, entered, leave) = (Log<String>(), Gate(), Gate())
      let handle =
        if let place {
          Hit.addListener(
            nil,
            { _ in
              entered.open()
              leave.pass()
              log.append("left")
            }, executeOn: place, on: world)
        } else {
          Hit.addListener(nil, concurrency: .concurrent(2), on: world) { _ async in
            entered.open()
            await offThePool { leave.pass() }
            log.append("left")
          }
        }
      (0..<2).map(Hit.init).queue(on: world)
      await offThePool { entered.pass() }
      handle.remove()
      let drain = Task {
        let isDrained = await world.drain()
        log.append("drained")
        return isDrained
      }
      // The drain has begun when the listener takes no others.
      #expect(await yieldUntil { !Hit.addListener(nil, { _ in }, executeOn: .listenerThread, on: world).isActive })
      for _ in 0..<100 { await Task.yield() }
      #expect(log.entries.isEmpty, "\(String(describing: place))")
      for _ in 0..<2 { leave.open() }
      #expect(await drain.value)
      #expect(log.entries.last == "drained" && Set(log.entries) == ["left", "drained"])
    }
  }

  @Test("D6: an async listener is active while a drain has it handle what waits", arguments: cores)
  func activeWhileDrained(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    let (numbers, entered, leave) = (Log<Int>(), Gate(), Gate())
    let handle = Hit.addListener(nil, concurrency: .serial, on: world) { hit async in
      numbers.append(hit.number)
      guard hit.number == 0 else { return }
      entered.open()
      await offThePool { leave.pass() }
    }
    (0..<3).map(Hit.init).queue(on: world)
    await offThePool { entered.pass() }
    async let isDrained = world.drain()
    #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
    #expect(handle.isActive)
    leave.open()
    #expect(await isDrained)
    #expect(!handle.isActive)
    #expect(numbers.entries.filter { $0 >= 0 } == [0, 1, 2])
  }

  @Test("D10: what waits on a drained thread for a listener of another central has an end", arguments: cores)
  func selfDispatching(core: EventCentral.Core) async {
    let (world, other) = (EventCentral(core: core), EventCentral(core: core))
    let (thread, numbers, added) = (EventThread(on: other), Log<Int>(), Gate())
    let adder = thread.addEventCallback { (_: Hit) in
      Hit.addListener(
        nil,
        { hit in
          numbers.append(hit.number)
          Hit(number: -1).queue(on: world)
        }, executeOn: .requesterThread, on: world)
      added.open()
    }
    thread.queueEvent(Hit())
    await offThePool { added.pass() }
    adder.remove()
    thread.addEventCallback { (_: Hit) in }
    let held = HeldThread(thread)
    // The thread takes up to 512 from the listener's place at once.
    (0..<600).map(Hit.init).queue(on: world)
    let drain = Task { await thread.drain() }
    // The drain has begun when the place of the listener takes nothing more either.
    #expect(await yieldUntil { Hit(number: -2).queue(on: world) == 0 })
    held.letGo()
    #expect(await drain.value)
    // Nor what its handlers dispatch.
    #expect(numbers.entries.filter { $0 != -2 } == Array(0..<600))
    #expect(Hit(number: 601).queue(on: world) == 0)
  }

  /// Has a thread of one central listen to another one.
  private func listen(
    on thread: EventThread, to world: EventCentral, _ callback: @escaping @Sendable (Hit) -> Void
  ) -> any EventListenerHandling {
    let handles = Log<any EventListenerHandling>()
    let adder = thread.addEventCallback { (_: Hit) in
      handles.append(Hit.addListener(nil, callback, executeOn: .requesterThread, on: world))
    }
    thread.queueEvent(Hit())
    let handle = handles.entries(atLeast: 1)[0]
    adder.remove()
    return handle
  }

  @Test("D10: a thread that is cancelled in a listener of another central calls it no more", arguments: cores)
  func cancelled(core: EventCentral.Core) async {
    await offThePool {
      let (world, other) = (EventCentral(core: core), EventCentral(core: core))
      let (thread, numbers) = (EventThread(on: other), Log<Int>())
      let handle = listen(on: thread, to: world) { [weak thread] hit in
        numbers.append(hit.number)
        if hit.number == 2 { thread?.cancel() }
      }
      let held = HeldThread(thread)
      (0..<600).map(Hit.init).queue(on: world)
      held.letGo()
      thread.join()
      #expect(waitUntil { !handle.isActive })
      #expect(numbers.entries == [0, 1, 2])
      #expect(waitUntil { world.listener.statistics.cancelled == 597 })
      #expect(Hit().queue(on: world) == 0)
    }
  }

  @Test("D10: a drained thread handles what waits for its listeners of another central anyhow", arguments: cores)
  func drainedAnyhow(core: EventCentral.Core) async {
    await offThePool {
      for _ in 0..<200 {
        let (world, other) = (EventCentral(core: core), EventCentral(core: core))
        let (thread, numbers, start) = (EventThread(on: other), Log<Int>(), Gate())
        let handle = listen(on: thread, to: world) { hit in numbers.append(hit.number) }
        // Each may fill the place and be taken away before it wakes the thread, or free a handler there meanwhile.
        let others = (1...2).map { number in
          let (handle, done) = (listen(on: thread, to: world) { _ in }, Gate())
          runThread {
            start.pass()
            if number == 1 { Hit(number: 0).queue(on: world) }
            handle.remove()
            done.open()
          }
          return done
        }
        for _ in others { start.open() }
        let isAccepted = Hit(number: 1).queue(on: world) > 0
        #expect(thread.drain() && isAccepted)
        #expect(numbers.entries.contains(1))
        for done in others { done.pass() }
        handle.remove()
      }
    }
  }

  @Test("D10: a handler for a pump that has ended keeps no drain of its central waiting", arguments: cores)
  func placeThatHasEnded(core: EventCentral.Core) async {
    let (world, other) = (EventCentral(core: core), EventCentral(core: core))
    let place = endedPlace(on: other)
    let node = EventNode(core: core)
    node.addHandler(executeOn: .pump(place), of: world) { (_: Hit) in }
    #expect(await world.drain())
    node.raise(event: Hit())
    #expect(await world.listener.drain())
  }

  @Test("D10: a drain of a thread that is cancelled in a listener of another central says false", arguments: cores)
  func cancelledDrain(core: EventCentral.Core) async {
    let (world, other) = (EventCentral(core: core), EventCentral(core: core))
    let thread = EventThread(on: other)
    await offThePool {
      _ = listen(on: thread, to: world) { [weak thread] hit in if hit.number == 2 { thread?.cancel() } }
    }
    let held = HeldThread(thread)
    (0..<600).map(Hit.init).queue(on: world)
    let drain = Task { await thread.drain() }
    #expect(await yieldUntil { Hit(number: 600).queue(on: world) == 0 })
    held.letGo()
    #expect(await drain.value == false)
  }

  private func endedPlace(on central: EventCentral) -> EventPumpPlace {
    let pump = EventPump(on: central)
    pump.cancel()
    pump.run()
    return pump.place
  }

  private final class Worker: EventThread, @unchecked Sendable {
    // All constant.
    let (world, log, gate): (EventCentral, Log<Int>, Gate)

    init(_ world: EventCentral, _ log: Log<Int>, _ gate: Gate, on central: EventCentral) {
      (self.world, self.log, self.gate) = (world, log, gate)
      super.init(on: central)
    }
    @available(*, unavailable) required init() {
      fatalError("A Worker needs what it listens to, and none was given: call init(_:_:_:on:).")
    }

    override func registerEventListeners() {
      addEventCallback { [self] (hit: Hit) in
        if hit.number == 0 { register() }
        if hit.number == 1 { gate.pass() }
      }
    }

    private func register() {
      let last = Last { [world] in
        Hit.addListener(nil, { _ in }, executeOn: .requesterThread, on: world)
      }
      Hit.addListener(
        nil, { [log] hit in withExtendedLifetime(last) { log.append(hit.number) } }, executeOn: .requesterThread,
        on: world)
      log.append(-1)
    }
  }

  /// Calls a closure as it is freed.
  private final class Last: Sendable {
    let call: @Sendable () -> Void
    init(_ call: @escaping @Sendable () -> Void) { self.call = call }
    deinit { call() }
  }

  @Test("D10: a drained worker ends, whose listener of another central registers one as it is freed", arguments: cores)
  func drainedWorker(core: EventCentral.Core) async {
    let (world, other) = (EventCentral(core: core), EventCentral(core: core))
    let (log, gate) = (Log<Int>(), Gate())
    let pool = EventPool(capacity: 1, balancer: .shared, on: other) { _ in Worker(world, log, gate, on: other) }
    pool.queueEvent(Hit())
    _ = await offThePool { log.entries(atLeast: 1) }
    pool.queueEvent(Hit(number: 1))
    Hit(number: 2).queue(on: world)
    let drain = Task { await pool.drain() }
    #expect(await yieldUntil { !pool.queueEvent(Hit(number: 3)) })
    gate.open()
    #expect(await drain.value)
    #expect(log.entries.filter { $0 >= 0 } == [2])
    #expect(Hit().queue(on: world) == 0)
  }

  @Test("a drain does not wait for a sequence that was ended, whose loop goes on", arguments: cores)
  func endedSequence(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    let hits = Hit.events(on: world)
    (0..<2).map(Hit.init).queue(on: world)
    var iterator = hits.makeAsyncIterator()
    #expect(await iterator.next()?.number == 0)
    hits.end()
    #expect(await world.drain())
    #expect(await iterator.next() == nil)
  }

  @Test("a sequence hands out what waits, and then ends", arguments: cores)
  func sequence(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    let hits = Hit.events(on: world)
    (0..<10).map(Hit.init).queue(on: world)
    async let isDrained = world.drain()
    var numbers: [Int] = []
    #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
    for await hit in hits where hit.number >= 0 { numbers.append(hit.number) }
    #expect(numbers == Array(0..<10))
    #expect(await isDrained)
  }

  @Test("at the deadline, or when its task is cancelled, what waits is freed and counted", arguments: cores)
  func late(core: EventCentral.Core) async {
    for isCancelled in [false, true] {
      let world = EventCentral(core: core)
      let (began, gate) = (Gate(), Gate())
      Hit.addListener(
        nil,
        { _ in
          began.open()
          gate.pass()
        }, executeOn: .listenerThread, on: world)
      (0..<10).map(Hit.init).queue(on: world)
      await offThePool { began.pass() }
      let drain = Task { await world.drain(until: isCancelled ? .distantFuture : world.now + .milliseconds(1)) }
      if isCancelled { drain.cancel() }
      #expect(await drain.value == false)
      gate.open()
      #expect(await yieldUntil { world.listener.statistics.cancelled == 9 })
      #expect(world.listener.statistics.delivered == 1)
    }
  }

  @Test("the drain of a central ends its schedules; one without listeners is drained at once", arguments: cores)
  func schedules(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    Hit().scheduleQueue(every: .seconds(3_600), on: world)
    #expect(await world.drain())
    #expect(await yieldUntil { world.scheduleStatistics.dropped == 1 })
    #expect(world.scheduleStatistics.pending == 0)
    #expect(await world.drain())
    #expect(await EventListener(on: world).drain())
  }
}
