// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

private struct Secret: Eventable {}

@Suite("Traces")
struct EventTraceTests {
  struct Number: Eventable { var value = 0 }

  /// A trace of these numbers, which go to the lanes that they name.
  private func trace(_ values: [Int]) -> EventTrace {
    let clock = ManualClock()
    let world = EventCentral(deterministic: 1, clock: clock)
    let thread = EventThread(on: world, name: "counter")
    thread.addEventCallback { (_: Number) in clock.advance(by: .milliseconds(1)) }
    return world.trace {
      for value in values {
        Number(value: value).queue(priority: value == 0 ? .high : .normal, on: world)
        world.run()
      }
      thread.cancel()
    }
  }

  @Test("an entry has the time, the type, the receiver and the lane")
  func entries() {
    let trace = trace([1, 0])
    #expect(trace.entries.map(\.sequence) == [0, 1])
    #expect(trace.entries[0].type == "EventCoreTests.EventTraceTests.Number")
    #expect(trace.entries.map(\.receiver) == ["counter", "counter"])
    #expect(trace.entries.map(\.priority) == [.normal, .high])
    #expect(trace.entries.map(\.method) == [.queue, .queue])
    #expect(trace.entries[1].time == trace.entries[0].time + .milliseconds(1))
    #expect(
      trace.description == """
        0  1000.000000000 s  EventCoreTests.EventTraceTests.Number -> counter, queue normal
        1  1000.001000000 s  EventCoreTests.EventTraceTests.Number -> counter, queue high
        """)
  }

  @Test("private and local types have the same name in each run")
  func privateTypes() {
    struct Local: Eventable {}
    let world = EventCentral(deterministic: 1)
    let thread = EventThread(on: world)
    thread.addEventCallback { (_: Secret) in }
    thread.addEventCallback { (_: Local) in }
    let trace = world.trace {
      Secret().queue(on: world)
      Local().queue(on: world)
      world.run()
    }
    #expect(trace.entries.map(\.type) == ["EventCoreTests.Secret", "EventCoreTests.EventTraceTests.Local"])
    thread.cancel()
  }

  @Test("receivers of one name are told apart, and pumps are traced, too")
  func names() {
    let world = EventCentral(deterministic: 1)
    let threads = (0..<2).map { _ in EventThread(on: world) }
    let pump = EventPump(on: world)
    pump.addEventCallback { (_: Number) in }
    for thread in threads { thread.addEventCallback { (_: Number) in } }
    let trace = world.trace {
      Number().queue(on: world)
      world.run()
      pump.run()
    }
    #expect(Set(trace.entries.map(\.receiver)) == ["EventThread", "EventThread 2", "EventPump"])
    for thread in threads { thread.cancel() }
    pump.cancel()
    pump.run()
  }

  @Test("the first difference is told with what came before")
  func difference() {
    let one = trace([1, 1, 1, 1, 1, 1])
    #expect(one.firstDifference(from: trace([1, 1, 1, 1, 1, 1])) == nil)
    let text = one.firstDifference(from: trace([1, 1, 1, 1, 0, 1]), context: 1)
    #expect(
      text == """
        The traces differ from event 4 on:
            3  1000.003000000 s  EventCoreTests.EventTraceTests.Number -> counter, queue normal
          this  4  1000.004000000 s  EventCoreTests.EventTraceTests.Number -> counter, queue normal
          other 4  1000.004000000 s  EventCoreTests.EventTraceTests.Number -> counter, queue high
        """)
    #expect(one.firstDifference(from: trace([1]))?.contains("other ends after 1 events") == true)
    #expect(trace([]).firstDifference(from: one)?.contains("this  ends after 0 events") == true)
  }

  @Test("what tasks take is not in a trace, which their speed would change", arguments: cores)
  func tasks(core: EventCentral.Core) async {
    let traces = Log<EventTrace>()
    for _ in 0..<50 {
      let world = EventCentral(deterministic: 7, core: core)
      let thread = EventThread(on: world, name: "counter")
      thread.addEventCallback { (_: Number) in }
      let taken = Log<Int>()
      let listener = Number.addListener(nil, on: world) { (number: Number) async in taken.append(number.value) }
      let numbers = Number.events(on: world)
      let loop = Task { for await number in numbers { taken.append(number.value) } }
      await offThePool {
        traces.append(
          world.trace {
            for value in 0..<8 {
              Number(value: value).queue(on: world)
              if value % 4 == 3 { world.run() }
            }
            #expect(waitUntil { taken.entries.count == 16 })
          })
      }
      listener.remove()
      numbers.end()
      await loop.value
      thread.cancel()
    }
    #expect(traces.entries[0].entries.map(\.receiver) == Array(repeating: "counter", count: 8))
    #expect(traces.entries.allSatisfy { $0 == traces.entries[0] })
  }

  @Test("nothing is noted outside of the closure, nor if that throws")
  func outside() throws {
    struct Failure: Error {}
    let world = EventCentral(deterministic: 1)
    let thread = EventThread(on: world)
    thread.addEventCallback { (_: Number) in }
    Number().queue(on: world)
    world.run()
    #expect(throws: Failure.self) { _ = try world.trace { throw Failure() } }
    #expect(world.trace {}.entries.isEmpty)
    thread.cancel()
  }
}
