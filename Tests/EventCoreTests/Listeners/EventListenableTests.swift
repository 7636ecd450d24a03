// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Listeners are registered on a central, an event thread, a pool or a listener")
struct EventListenableTests {
  @Test(
    "D4: a listener on an event thread hears what the thread hears, in the context it asks for",
    arguments: cores)
  func eventThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (thread, log, threads) = (EventThread(on: central), Log<Int>(), Log<UInt>())
      thread.addEventCallback { (_: Pong) in threads.append(currentThread()) }
      let own = Ping.addListener(nil, executeOn: .listenerThread, on: thread) { event in
        threads.append(currentThread())
        log.append(event.number)
      }
      Pong().queue(on: central)
      Ping(number: 1).queue(on: central)
      #expect(thread.queueEvent(Ping(number: 2)))
      #expect(log.entries(atLeast: 2) == [1, 2])
      #expect(Set(threads.entries).count == 1)
      own.remove()
      let beside = Ping.addListener(nil, executeOn: .taskThread, on: thread) { event in
        log.append(10 + event.number)
      }
      Ping(number: 1).queue(on: central)
      #expect(thread.queueEvent(Ping(number: 2)))
      #expect(log.entries(atLeast: 4) == [1, 2, 11, 12])
      #expect(thread.listener.listenerCount == 1)
      thread.cancel()
      #expect(!beside.isActive)
      #expect(!thread.queueEvent(Ping(number: 3)))
    }
  }

  @Test("D9: a listener on an event thread retains neither the thread nor its requester", arguments: cores)
  func eventThreadEnds(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let lifetime = Lifetime()
      var requester: Requester? = Requester(lifetime.token())
      var thread: EventThread? = EventThread(on: central)
      let handle = Ping.addListener(
        requester!, Requester.onPing, executeOn: .listenerThread, on: thread!)
      weak let weakThread = thread
      thread = nil
      #expect(weakThread == nil)
      #expect(waitUntil { !handle.isActive })
      requester = nil
      #expect(lifetime.waitUntilNone())
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test("D4: a listener on a pool hears every event, also those a thread handles", arguments: cores)
  func pool(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (handled, heard) = (Log<Int>(), Log<Int>())
      let pool = EventPool<EventThread>(capacity: 2, on: central) { _ in EventThread(on: central) }
      pool.withThreads { threads in
        for thread in threads {
          thread.addEventCallback { (event: Ping) in handled.append(event.number) }
        }
      }
      Ping.addListener(nil, executeOn: .listenerThread, on: pool) { heard.append($0.number) }
      Ping(number: 0).queue(on: central)
      #expect(pool.queueEvent(Ping(number: 1)))
      #expect(heard.entries(atLeast: 2) == [0, 1])
      #expect(pool.drain())
      #expect(handled.entries.sorted() == [0, 1])
    }
  }

  @Test("D1: an EventListener can be sent events of its own, and counts them", arguments: cores)
  func listener(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let listener = EventListener(on: central)
      let (log, entered, leave) = (Log<Int>(), Gate(), Gate())
      Ping.addListener(nil, executeOn: .listenerThread, on: listener) { event in
        log.append(event.number)
        guard event.number == 0 else { return }
        entered.open()
        leave.pass()
      }
      #expect(!listener.queueEvent(Pong()))
      #expect(listener.queueEvent(Ping(number: 0)))
      entered.pass()
      #expect(listener.queueEvent(Ping(number: 2)))
      #expect(listener.stackEvent(Ping(number: 1)))
      Ping(number: 3).queue(on: central)
      #expect(listener.eventCount == 3)
      leave.open()
      #expect(log.entries(atLeast: 4) == [0, 1, 2, 3])
      #expect(central.listener.queueEvent(Ping(number: 4)))
      #expect(log.entries(atLeast: 5).last == 4)
    }
  }

  @Test(
    "inside a handler of an event thread a listener on that thread needs no place", arguments: cores)
  func inPlace(core: EventCentral.Core) {
    final class Counter { var numbers: [Int] = [] }
    let central = EventCentral(core: core)
    let (thread, log) = (EventThread(on: central), Log<Int>())
    thread.addEventCallback { [unowned thread] (_: Pong) in
      let counter = Counter()
      Ping.addListener(nil, on: thread) { event in
        counter.numbers.append(event.number)
        log.append(counter.numbers.count)
      }
    }
    Pong().queue(on: central)
    #expect(waitUntil { thread.queueEvent(Ping(number: 1)) })
    thread.queueEvent(Ping(number: 2))
    #expect(thread.drain())
    #expect(log.entries == [1, 2])
  }

  /// How an event thread or a pool comes to its end.
  enum End: CaseIterable {
    case cancel, drain, lastReference
  }

  @Test(
    "D9, D10: what is registered on a thread ends with it, even if its listener is held",
    arguments: cores, End.allCases)
  func heldListenerOfAThread(core: EventCentral.Core, end: End) async {
    await offThePool {
      let central = EventCentral(core: core)
      var thread: EventThread? = EventThread(on: central)
      let listener = thread!.listener
      let handle = Ping.addListener(nil, executeOn: .taskThread, on: thread!) { _ in }
      switch end {
      case .cancel: thread!.cancel()
      case .drain: #expect(thread!.drain())
      case .lastReference: thread = nil
      }
      #expect(!handle.isActive)
      // A listener that is registered too late ends at once.
      #expect(!Ping.addListener(nil, executeOn: .taskThread, on: listener) { _ in }.isActive)
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test(
    "D9, D10: what is registered on a pool ends with it, even if its listener is held",
    arguments: cores, End.allCases)
  func heldListenerOfAPool(core: EventCentral.Core, end: End) async {
    await offThePool {
      let central = EventCentral(core: core)
      var pool: EventPool<EventThread>? = EventPool(on: central) { _ in EventThread(on: central) }
      let listener = pool!.listener
      let handle = Ping.addListener(nil, executeOn: .taskThread, on: pool!) { _ in }
      switch end {
      case .cancel: pool!.cancel()
      case .drain: #expect(pool!.drain())
      case .lastReference: pool = nil
      }
      #expect(!handle.isActive)
      #expect(!Ping.addListener(nil, executeOn: .taskThread, on: listener) { _ in }.isActive)
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test("D10: a listener on a thread that has been cancelled never begins", arguments: cores)
  func afterTheCancel(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      // Nobody has asked for the thread's listener before.
      thread.cancel()
      #expect(!Ping.addListener(nil, executeOn: .taskThread, on: thread) { _ in }.isActive)
      #expect(!thread.queueEvent(Ping()))
      #expect(Ping().queue(on: central) == 0)
    }
  }
}
