// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("Scheduling: many timers, and no timer that is due")
struct ScheduleScaleTests {
  typealias Number = ScheduleWorld.Number

  @Test(
    "of very many timers those that are not cancelled come once each, by deadline and call",
    arguments: cores)
  func veryMany(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("many timers, \(core)"))
    // In a debug build a million timers take some ten seconds on each core.
    let count = orderStep == 1 ? 1_000_000 : 100_000
    let world = ScheduleWorld(core)
    // Four timers for each deadline.
    let deadlines = (0..<count).map { _ in
      UInt64.random(in: 1...UInt64(count / 4), using: &random)
    }
    var handles: [EventScheduleHandle] = []
    handles.reserveCapacity(count)
    for (value, deadline) in deadlines.enumerated() {
      handles.append(
        Number(value: value).scheduleQueue(at: world.after(deadline), on: world.central))
    }
    for value in stride(from: 0, to: count, by: 2) { handles[value].cancel() }
    // In two steps, so that what is due and what is not are told apart among so many.
    let half = world.clock.nanoseconds + UInt64(count / 8)
    world.clock.advance(to: half)
    let dueFirst = deadlines.enumerated().count { $0 % 2 == 1 && $1 <= UInt64(count / 8) }
    #expect(handles.count { $0.dispatches == 1 } == dueFirst)
    world.clock.advance(by: .nanoseconds(count))
    let fired = world.finish()
    #expect(fired.count == count / 2)
    #expect(fired.allSatisfy { $0 % 2 == 1 })
    let isInOrder = zip(fired, fired.dropFirst()).allSatisfy {
      (deadlines[$0], $0) < (deadlines[$1], $1)
    }
    #expect(isInOrder)
    #expect(handles.allSatisfy { $0.dispatches <= 1 })
  }

  #if os(Linux)
    /// Notes the clock of the processor time of the thread that dispatches, on which a balancer runs.
    /// A pool asks its balancer only if it has two threads to choose from.
    struct ClockNotingBalancer: EventPoolBalancing {
      let clocks: Log<clockid_t>

      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        var clock = clockid_t()
        if pthread_getcpuclockid(pthread_self(), &clock) == 0 { clocks.append(clock) }
        return 0
      }
    }

    private static func nanoseconds(on clock: clockid_t) -> Int {
      var time = timespec()
      clock_gettime(clock, &time)
      return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    /// Notes what the system may add to a sleep of the thread that dispatches, in nanoseconds.
    struct SlackNotingBalancer: EventPoolBalancing {
      let slacks: Log<String>

      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        func contents(_ read: (UnsafeMutablePointer<CChar>, Int) -> Int) -> String {
          var bytes = [CChar](repeating: 0, count: 64)
          let count = read(&bytes, bytes.count)
          return String(
            decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        let link = contents { readlink("/proc/thread-self", $0, $1) }
        let path = "/proc/\(link.split(separator: "/").last ?? "self")/timerslack_ns"
        let file = open(path, O_RDONLY)
        slacks.append(contents { read(file, $0, $1) })
        close(file)
        return 0
      }
    }

    @Test(
      "the system adds nothing to the sleep of a scheduler's thread", arguments: cores)
    func slack(core: EventCentral.Core) {
      let (central, slacks) = (EventCentral(core: core), Log<String>())
      let pool = EventPool<EventThread>(
        capacity: 2, balancer: SlackNotingBalancer(slacks: slacks), on: central
      ) { _ in
        let thread = EventThread()
        thread.addEventCallback { (_: Number) in }
        return thread
      }
      // What is due at once may be dispatched by the thread that schedules it; so not the first one.
      let timer = Number().scheduleQueue(every: .milliseconds(1), on: central)
      #expect(slacks.entries(atLeast: 2)[1] == "1\n")
      timer.cancel()
      pool.cancel()
    }

    // the scheduler's thread          test
    // dispatches: notes its clock
    // sleeps                          notes the clock; waits for a timer of another central
    //                                 the clock is where it was
    @Test("a scheduler with nothing due uses no processor time", arguments: cores, [false, true])
    func idle(core: EventCentral.Core, hasPending: Bool) {
      let central = EventCentral(core: core)
      let (clocks, handled, over) = (Log<clockid_t>(), Log<Int>(), Gate())
      let pool = EventPool<EventThread>(
        capacity: 2, balancer: ClockNotingBalancer(clocks: clocks), on: central
      ) { _ in
        let thread = EventThread()
        thread.addEventCallback { (event: Number) in handled.append(event.value) }
        return thread
      }
      let pending =
        hasPending ? Number(value: 1).scheduleQueue(at: .now() + .seconds(3600), on: central) : nil
      Number(value: 0).scheduleQueue(at: .now() + .milliseconds(1), on: central)
      #expect(handled.entries(atLeast: 1) == [0])
      let other = EventCentral(core: core)
      let clock = other.scheduleThread(over)
      let before = Self.nanoseconds(on: clocks.entries[0])
      over.pass()
      // A thread that polls would use all of the 200 ms, or its share of them on a busy machine.
      #expect(Self.nanoseconds(on: clocks.entries[0]) - before < 10_000_000)
      pending?.cancel()
      clock.cancel()
      pool.cancel()
    }
  #endif
}

extension EventCentral {
  /// Makes a thread that opens a gate in 200 ms, by the scheduler of this central.
  fileprivate func scheduleThread(_ gate: Gate) -> EventThread {
    let thread = EventThread(on: self)
    thread.addEventCallback { (_: ScheduleWorld.Number) in gate.open() }
    ScheduleWorld.Number().scheduleQueue(at: .now() + .milliseconds(200), on: self)
    return thread
  }
}
