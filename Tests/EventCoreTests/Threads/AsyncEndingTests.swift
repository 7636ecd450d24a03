// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

/// A handler that opens a gate when it runs, and stays until it is let go.
private struct Stay: Sendable {
  let entered = Gate()
  let leave = Gate()
  let log = Log<String>()

  func run() {
    entered.open()
    leave.pass()
    log.append("left")
  }
}

@Suite("D6, D10: a task may wait for the end of threads, pools and handlers")
struct AsyncEndingTests {
  @Test("D10: a task may drain and join a thread", arguments: cores)
  func thread(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (thread, log) = (EventThread(on: central), Log<Int>())
    thread.addEventCallback { (event: Ping) in log.append(event.number) }
    for number in 0..<10 { Ping(number: number).queue(on: central) }
    #expect(await thread.drain())
    #expect(log.entries == Array(0..<10))
    await thread.join()
    #expect(await thread.drain())
    let other = EventThread(on: central)
    other.cancel()
    await other.join()
  }

  @Test("D10: a drain gives up at its deadline, and when its task is cancelled", arguments: cores)
  func givingUp(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    for isCancelled in [false, true] {
      let (thread, stay) = (EventThread(on: central), Stay())
      thread.addEventCallback { (_: Ping) in stay.run() }
      for _ in 0..<3 { Ping().queue(on: central) }
      await offThePool { stay.entered.pass() }
      let drain = Task {
        await thread.drain(until: isCancelled ? .distantFuture : .now() + .milliseconds(1))
      }
      if isCancelled { drain.cancel() }
      #expect(await !drain.value)
      stay.leave.open()
      await thread.join()
      #expect(thread.statistics == .init(delivered: 1, skipped: 0, cancelled: 2))
    }
  }

  @Test("D10: a task may drain and join a pool", arguments: cores)
  func pool(core: EventCentral.Core) async {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    let pool = EventPool<EventThread>(capacity: 3, on: central) { _ in
      let thread = EventThread(on: central)
      thread.addEventCallback { (event: Ping) in log.append(event.number) }
      return thread
    }
    for number in 0..<100 { Ping(number: number).queue(on: central) }
    #expect(await pool.drain())
    await pool.join()
    #expect(log.entries.sorted() == Array(0..<100))
  }

  @Test("D10: join() waits for the end also in a task that is cancelled", arguments: cores)
  func joining(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    for isPool in [false, true] {
      let stay = Stay()
      let join: @Sendable () async -> Void
      if isPool {
        let pool = EventPool<EventThread>(capacity: 1, on: central)
        pool.withThreads { _ = $0[0].addEventCallback { (_: Ping) in stay.run() } }
        join = {
          pool.cancel()
          await pool.join()
        }
      } else {
        let thread = EventThread(on: central)
        thread.addEventCallback { (_: Ping) in stay.run() }
        join = {
          thread.cancel()
          await thread.join()
        }
      }
      Ping().queue(on: central)
      await offThePool { stay.entered.pass() }
      let joined = Task {
        await join()
        stay.log.append("joined")
      }
      joined.cancel()
      // Time for a join that would not wait.
      for _ in 0..<1_000 { await Task.yield() }
      #expect(stay.log.entries.isEmpty)
      stay.leave.open()
      await joined.value
      #expect(stay.log.entries == ["left", "joined"])
    }
    // Nobody but the join runs the handler that ends the thread.
    let world = EventCentral(deterministic: 1, core: core)
    let (thread, other) = (EventThread(on: world), EventThread(on: world))
    other.addEventCallback { (_: Ping) in thread.cancel() }
    Ping().queue(on: world)
    await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await thread.join()
    }.value
    #expect(other.statistics.delivered == 1)
    #expect(await other.drain())
  }

  @Test("D6: removed() returns when no call is running, also in a task that is cancelled", arguments: cores)
  func removed(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    for kind in ["callback", "listener", "node"] {
      let stay = Stay()
      let node = EventNode(core: core)
      let (removed, isActive): (@Sendable () async -> Bool, @Sendable () -> Bool)
      switch kind {
      case "callback":
        let handle = thread.addEventCallback { (_: Ping) in stay.run() }
        (removed, isActive) = ({ await handle.removed() }, { handle.isActive })
      case "listener":
        let handle = Ping.addListener(nil, executeOn: .taskThread, on: central) { _ in stay.run() }
        (removed, isActive) = ({ await handle.removed() }, { handle.isActive })
      default:
        let handle = node.addHandler(.onRaise) { (_: Ping) in stay.run() }
        (removed, isActive) = ({ await handle.removed() }, { handle.isActive })
        DispatchQueue.global().async { node.raise(event: Ping()) }
      }
      Ping().queue(on: central)
      await offThePool { stay.entered.pass() }
      let waiting = Task {
        let isFirst = await removed()
        stay.log.append("removed")
        return isFirst
      }
      waiting.cancel()
      await offThePool { #expect(waitUntil { !isActive() }) }
      #expect(stay.log.entries.isEmpty)
      stay.leave.open()
      #expect(await waiting.value)
      #expect(stay.log.entries == ["left", "removed"])
      #expect(await !removed())
    }
    await thread.drain()
  }

  @Test("D6: ended() of a scope returns when none of its listeners is running", arguments: cores)
  func scope(core: EventCentral.Core) async {
    let (central, scope, stay) = (EventCentral(core: core), EventListenerScope(), Stay())
    Ping.addListener(nil, executeOn: .listenerThread, on: central) { _ in stay.run() }
      .stored(in: scope)
    Ping().queue(on: central)
    await offThePool { stay.entered.pass() }
    let ended = Task {
      await scope.ended()
      stay.log.append("ended")
    }
    await offThePool { #expect(waitUntil { Ping().queue(on: central) == 0 }) }
    #expect(stay.log.entries.isEmpty)
    stay.leave.open()
    await ended.value
    #expect(stay.log.entries == ["left", "ended"])
  }

  @Test("tasks that wait block no thread of the cooperative pool", arguments: cores)
  func manyWait(core: EventCentral.Core) async {
    let (central, stay) = (EventCentral(core: core), Stay())
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Ping) in stay.run() }
    Ping().queue(on: central)
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<64 { group.addTask { await thread.drain() } }
      // The task that lets the others go needs a thread of that pool, too.
      group.addTask {
        stay.leave.open()
        return true
      }
      for await isDrained in group { #expect(isDrained) }
    }
  }
}
