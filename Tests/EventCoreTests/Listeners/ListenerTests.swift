// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Listeners: what they get, where, and until when")
struct ListenerTests {
  // MARK: What and where

  @Test("D2, D4: a listener gets all events, once, in order", arguments: cores, ListenerPlace.allCases)
  func allInOrder(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let log = Log<Int>()
      let handle = Ping.addListener(
        nil, { log.append($0.number) }, executeOn: place.executeOn, on: central)
      for count in [1, 63, 64, 65, 511, 512, 513, 1536] {
        for number in 0..<count { #expect(Ping(number: number).queue(on: central) == 1) }
        #expect(log.entries(atLeast: count) == Array(0..<count))
        _ = log.take()
      }
      #expect(handle.isActive)
      #expect(handle.remove())
      #expect(!handle.remove())
      #expect(!handle.isActive)
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test(
    "D1: the most urgent of what waits comes first", arguments: cores,
    [ListenerPlace.listenerThread, .serialQueue, .concurrentQueue])
  func urgentFirst(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, executeOn) = (Log<Int>(), place.executeOn)
      let handle = Ping.addListener(
        nil, { log.append($0.number) }, executeOn: executeOn, on: central)
      let held = HeldPlace(executeOn, on: central)
      var model = LaneModel<Int>()
      var random = SeededRandom(seed: announcedSeed("ListenerTests.urgentFirst, \(core), \(place)"))
      for number in 0..<200 {
        let lane = Int.random(in: 0..<10, using: &random)
        model.post(number, lane: lane)
        Ping(number: number).dispatch(TestLane.all[lane], on: central)
      }
      #expect(handle.waitingEventCount == 200)
      held.letGo()
      #expect(log.entries(atLeast: 200) == model.takeAll())
      handle.remove()
    }
  }

  @Test("a handle tells where its listener runs", arguments: cores)
  func tellsWhere(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let queue = DispatchQueue(label: "mine")
    func place(_ executeOn: ExecuteEventOn) -> String {
      let handle = Ping.addListener(nil, { _ in }, executeOn: executeOn, on: central)
      defer { handle.remove() }
      return "\(handle.executesOn)"
    }
    // The test is a task.
    #expect(place(.requesterThread) == "task")
    #expect(place(.taskThread) == "task")
    #expect(place(.listenerThread) == "listenerThread")
    #expect(place(.dispatchQueue(.main)) == "mainQueue")
    guard
      case .dispatchQueue(let found) = Ping.addListener(
        nil, { _ in }, executeOn: .dispatchQueue(queue), on: central
      ).executesOn
    else {
      Issue.record("not a queue")
      return
    }
    #expect(found === queue)
  }

  @Test("a listener runs by default where it is registered", arguments: cores)
  func defaultContext(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let onMain = await MainActor.run {
      Ping.addListener(nil, { _ in }, on: central)
    }
    #expect("\(onMain.executesOn)" == "mainQueue")
    await offThePool {
      let other = Ping.addListener(nil, { _ in }, executeOn: .requesterThread, on: central)
      #expect("\(other.executesOn)" == "listenerThread")
    }
  }

  @Test("registered inside a handler of an event thread, a listener is one of its handlers", arguments: cores)
  func insideAnEventThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let (handles, log) = (Log<any EventListenerHandling>(), Log<String>())
      thread.addEventCallback { (_: Pong) in
        handles.append(Ping.addListener(nil, { log.append("ping \($0.number)") }, on: central))
        log.append("registered")
      }
      Pong().queue(on: central)
      #expect(log.entries(atLeast: 1) == ["registered"])
      let held = HeldThread(thread)
      Ping(number: 1).queue(on: central)
      #expect(handles.entries[0].waitingEventCount == 1)
      #expect(thread.eventCount == 1)
      held.letGo()
      #expect(log.entries(atLeast: 2) == ["registered", "ping 1"])
      #expect("\(handles.entries[0].executesOn)" == "eventThread")
      // It ends with the thread.
      thread.cancel()
      thread.join()
      #expect(!handles.entries[0].isActive)
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test("a handler of another central's thread registers listeners that run on that thread", arguments: cores)
  func insideAThreadOfAnotherCentral(core: EventCentral.Core) async {
    await offThePool {
      let (central, other) = (EventCentral(core: core), EventCentral(core: core))
      let thread = EventThread(on: other)
      let (handles, log) = (Log<any EventListenerHandling>(), Log<Bool>())
      thread.addEventCallback { (_: Pong) in
        let home = currentThread()
        handles.append(
          Ping.addListener(nil, { _ in log.append(currentThread() == home) }, on: central))
      }
      Pong().queue(on: other)
      let handle = handles.entries(atLeast: 1)[0]
      #expect("\(handle.executesOn)" == "eventThread")
      for _ in 0..<100 { Ping().queue(on: central) }
      #expect(log.entries(atLeast: 100) == Array(repeating: true, count: 100))
      // Once the thread has ended, the next event ends the listener.
      thread.cancel()
      thread.join()
      #expect(waitUntil { Ping().queue(on: central) == 0 })
    }
  }

  @Test("D10: a thread that ends while events wait for its listener ends it and frees them", arguments: cores)
  func threadEndsWhileEventsWait(core: EventCentral.Core) async {
    await offThePool {
      let (central, other) = (EventCentral(core: core), EventCentral(core: core))
      let thread = EventThread(on: other)
      let handles = Log<any EventListenerHandling>()
      thread.addEventCallback { (_: Pong) in
        handles.append(Ping.addListener(nil, { _ in }, on: central))
      }
      Pong().queue(on: other)
      let handle = handles.entries(atLeast: 1)[0]
      let held = HeldThread(thread)
      #expect(Ping().queue(on: central) == 1)
      thread.cancel()
      held.letGo()
      thread.join()
      #expect(waitUntil { !handle.isActive })
      #expect(handle.waitingEventCount == 0)
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test(
    "a task listener has one task of its own, with the task-local values of its registration",
    arguments: cores)
  func taskOfItsOwn(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let log = Log<Int>()
    let handle = TaskValue.$number.withValue(7) {
      Ping.addListener(
        nil, { _ in log.append(TaskValue.number) }, executeOn: .requesterThread, on: central)
    }
    for _ in 0..<3 { Ping().queue(on: central) }
    await offThePool { #expect(log.entries(atLeast: 3) == [7, 7, 7]) }
    handle.remove()
  }

  enum TaskValue {
    @TaskLocal static var number = 0
  }

  @Test("D8: a listener that asks for the time gets that of the dispatch", arguments: cores)
  func dispatchTime(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let log = Log<(EventPriority, DispatchTime)>()
      let handle = Ping.addListener(
        nil, { _, priority, time in log.append((priority, time)) }, executeOn: .listenerThread,
        on: central)
      let before = DispatchTime.now()
      Ping().queue(priority: .high, on: central)
      let after = DispatchTime.now()
      let entry = log.entries(atLeast: 1)[0]
      #expect(entry.0 == .high)
      #expect(before <= entry.1 && entry.1 <= after)
      handle.remove()
    }
  }

  // MARK: Ending

  @Test(
    "D6: no call begins after removeAndWait, while events are in flight",
    arguments: cores, ListenerPlace.allCases)
  func removeWhileInFlight(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      for _ in 0..<30 {
        let (removedFlag, lateCount) = (Shared(Atomic(false)), Shared(Atomic(0)))
        let began = Gate()
        let handle = Ping.addListener(
          nil,
          { _ in
            if removedFlag.value.load(ordering: .acquiring) {
              lateCount.value.wrappingAdd(1, ordering: .relaxed)
            }
            began.open()
          }, executeOn: place.executeOn, on: central)
        for number in 0..<200 { Ping(number: number).queue(on: central) }
        began.pass()
        handle.removeAndWait()
        removedFlag.value.store(true, ordering: .releasing)
        for number in 0..<10 { Ping(number: number).queue(on: central) }
        #expect(waitUntil { handle.waitingEventCount == 0 })
        #expect(lateCount.value.load(ordering: .acquiring) == 0)
      }
    }
  }

  final class Shared<Value: ~Copyable & Sendable>: Sendable {
    let value: Value
    init(_ value: consuming Value) { self.value = value }
  }

  @Test("D6: removeAndWait waits for the call that runs", arguments: cores, ListenerPlace.allCases)
  func removeAndWaitWaits(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (entered, leave, log) = (Gate(), Gate(), Log<String>())
      let handle = Ping.addListener(
        nil,
        { _ in
          entered.open()
          leave.pass()
          log.append("done")
        }, executeOn: place.executeOn, on: central)
      Ping().queue(on: central)
      entered.pass()
      let waited = Gate()
      runThread {
        #expect(handle.removeAndWait())
        log.append("waited")
        waited.open()
      }
      #expect(waitUntil { !handle.isActive })
      leave.open()
      waited.pass()
      #expect(log.entries == ["done", "waited"])
    }
  }

  @Test("D6, D7: a handler may remove itself and others", arguments: cores, ListenerPlace.allCases)
  func removeInside(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (handles, log, executeOn) = (
        Log<any EventListenerHandling>(), Log<String>(), place.executeOn
      )
      let registered = Gate()
      let first = Ping.addListener(
        nil,
        { _ in
          registered.pass()
          log.append("first")
          for handle in handles.entries { #expect(handle.remove()) }
          log.append("removed")
        }, executeOn: executeOn, on: central)
      let second = Ping.addListener(
        nil, { _ in log.append("second") }, executeOn: executeOn, on: central)
      handles.append(first)
      if place != .task { handles.append(second) }
      for _ in 0..<5 { Ping().queue(on: central) }
      registered.open()
      #expect(waitUntil { log.entries.contains("removed") })
      if place == .task {
        #expect(waitUntil { log.entries.count == 7 })
        second.remove()
      }
      #expect(waitUntil { first.waitingEventCount == 0 && second.waitingEventCount == 0 })
      #expect(log.entries.filter { $0 != "second" } == ["first", "removed"])
      #expect(log.entries.count == (place == .task ? 7 : 2))
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test("D7: a handler may dispatch and register", arguments: cores, ListenerPlace.allCases)
  func reentry(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, executeOn) = (Log<String>(), place.executeOn)
      let handle = Ping.addListener(
        nil,
        { ping in
          log.append("begin \(ping.number)")
          if ping.number == 0 {
            Pong.addListener(
              nil, { log.append("pong \($0.number)") }, executeOn: executeOn, on: central)
            Pong(number: 1).queue(on: central)
            Ping(number: 1).queue(on: central)
          }
          log.append("end \(ping.number)")
        }, executeOn: executeOn, on: central)
      Ping().queue(on: central)
      let entries = log.entries(atLeast: 5)
      #expect(
        Array(entries.filter { !$0.hasPrefix("pong") }) == ["begin 0", "end 0", "begin 1", "end 1"])
      #expect(entries.contains("pong 1"))
      if place != .task {
        #expect(entries == ["begin 0", "end 0", "pong 1", "begin 1", "end 1"])
      }
      handle.remove()
    }
  }

  @Test(
    "D10: what waits on a queue that nobody serves is counted, and freed with the last listener",
    arguments: cores)
  func unservedQueue(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let queue = DispatchQueue(label: "unserved")
      queue.suspend()
      defer { queue.resume() }
      let lifetime = Lifetime()
      let first = Carrying.addListener(
        nil, { _ in }, executeOn: .dispatchQueue(queue), on: central)
      let second = Ping.addListener(nil, { _ in }, executeOn: .dispatchQueue(queue), on: central)
      for _ in 0..<100 { Carrying(token: lifetime.token()).queue(on: central) }
      #expect(first.waitingEventCount == 100)
      #expect(second.waitingEventCount == 100)
      first.removeAndWait()
      #expect(lifetime.alive == 100)
      second.removeAndWait()
      #expect(lifetime.alive == 0)
      #expect(first.waitingEventCount == 0)
    }
  }

  @Test("D9, D10: listeners end with their central", arguments: cores, ListenerPlace.allCases)
  func centralGoes(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let lifetime = Lifetime()
      for _ in 0..<20 {
        var central: EventCentral? = EventCentral(core: core)
        let token = lifetime.token()
        let handle = Carrying.addListener(
          nil, { _ in withExtendedLifetime(token) {} }, executeOn: place.executeOn, on: central!)
        for _ in 0..<5 { Carrying(token: lifetime.token()).queue(on: central!) }
        central = nil
        #expect(waitUntil { !handle.isActive })
        #expect(!handle.remove())
      }
      #expect(lifetime.waitUntilNone())
    }
  }

  @Test("D9: an EventListener has a thread of its own, and its listeners end with it", arguments: cores)
  func listenerInstance(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      var listener: EventListener? = EventListener(on: central, name: "own")
      let log = Log<UInt>()
      let own = Ping.addListener(
        nil, { (_: Ping) in log.append(currentThread()) }, executeOn: .listenerThread, on: listener!)
      let shared = Ping.addListener(
        nil, { (_: Ping) in log.append(currentThread()) }, executeOn: .listenerThread, on: central)
      Ping().queue(on: central)
      #expect(Set(log.entries(atLeast: 2)).count == 2)
      #expect(listener!.listenerCount == 1)
      listener = nil
      #expect(waitUntil { !own.isActive })
      #expect(shared.isActive)
      #expect(Ping().queue(on: central) == 1)
      central.listener.end()
      #expect(waitUntil { !shared.isActive })
      #expect(!Ping.addListener(nil, { _ in }, executeOn: .taskThread, on: central).isActive)
    }
  }
}
