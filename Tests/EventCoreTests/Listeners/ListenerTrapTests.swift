// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with listeners trap")
struct ListenerTrapTests {
  @Test("removeAndWait inside the callback itself, wherever it runs", arguments: cores)
  func waitingForOneself(core: EventCentral.Core) async {
    let places = ["listenerThread", "task", "concurrentQueue", "mainQueue"]
    for place in places {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [core = core.rawValue as String, place = place as String] in
        let central = EventCentral(core: EventCentral.Core(rawValue: core)!)
        let executeOn = ListenerPlace.allCases.first { "\($0)" == place }!.executeOn
        let (handles, registered, done) = (Log<any EventListenerHandling>(), Gate(), Gate())
        let handle = Ping.addListener(
          nil,
          { _ in
            registered.pass()
            handles.entries[0].removeAndWait()
            done.open()
          }, executeOn: executeOn, on: central)
        handles.append(handle)
        registered.open()
        Ping().queue(on: central)
        await offThePool { done.pass() }
      }
      expectMessage(result, "removeAndWait() waits until its handler is not running")
    }
  }

  @Test("a listener that does not say where it runs, registered in a task or on another thread")
  func noPlace() async {
    let inTask = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Ping.addListener(nil) { _ in }
    }
    expectMessage(inTask, "a thread to which no event can come back")
    expectMessage(inTask, "In Swift 5 mode a method of the MainActor is such a callback, too")
    let onThread = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      await offThePool { _ = Ping.addListener(nil, on: EventCentral()) { _ in } }
    }
    expectMessage(onThread, "say where it is to be called")
    // A dispatch queue may be concurrent, so that a second listener there might run beside the first.
    let onQueue = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let central = EventCentral()
      let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
      Ping.addListener(nil, executeOn: .dispatchQueue(queue), on: central) { _ in
        Pong.addListener(nil, on: central) { _ in }
      }
      Ping().queue(on: central)
      await offThePool { Gate().pass() }
    }
    expectMessage(onQueue, "a dispatch queue or a thread")
  }

  final class Other {}

  final class Confused: EventListening {
    @EventMethod<Other, Ping>
    var onPing = { (self, event: Ping, priority: EventPriority, time: DispatchTime) in }
  }

  @Test("an event method of another class")
  func anotherClass() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Confused().registerListeners()
    }
    expectMessage(result, "name the class that declares the property")
  }

  @Test("join of a UIEventThread on the main thread")
  func joiningOnMain() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      await MainActor.run { UIEventThread(on: EventCentral()).join() }
    }
    expectMessage(result, "whose callbacks run on the main thread")
  }

  @Test(
    "drain of a UIEventThread in its own callback, which is on the main thread", arguments: cores)
  func drainingOneselfOnMain(core: EventCentral.Core) async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [core = core.rawValue as String] in
      let thread = UIEventThread(on: EventCentral(core: EventCentral.Core(rawValue: core)!))
      thread.addEventCallback { [unowned thread] (_: Ping) in
        MainActor.preconditionIsolated()
        thread.drain()
      }
      thread.queueEvent(Ping())
      await offThePool { thread.join() }
    }
    expectMessage(
      result, "drain(until:) waits for the end of its event thread, and was called on that thread")
  }

  @Test(
    "endAndWait of a scope in a callback of one of its listeners, wherever it runs",
    arguments: cores)
  func scopeWaitingForItself(core: EventCentral.Core) async {
    for place in ListenerPlace.allCases {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [core = core.rawValue as String, place = "\(place)" as String] in
        let central = EventCentral(core: EventCentral.Core(rawValue: core)!)
        let executeOn = ListenerPlace.allCases.first { "\($0)" == place }!.executeOn
        let (scope, registered, done) = (EventListenerScope(), Gate(), Gate())
        // The scope may wait for the listeners before and after the one that ends it.
        for number in 0..<3 {
          scope.add(
            Ping.addListener(
              nil,
              { _ in
                guard number == 1 else { return }
                registered.pass()
                scope.endAndWait()
                done.open()
              }, executeOn: executeOn, on: central))
        }
        registered.open()
        Ping().queue(on: central)
        await offThePool { done.pass() }
      }
      expectMessage(result, "where it would wait for itself")
    }
  }
}
