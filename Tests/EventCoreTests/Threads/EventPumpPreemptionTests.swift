// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if os(Linux)
  import EventCore
  import EventCoreTestSupport
  import Glibc
  import Synchronization
  import Testing

  @Suite("EventPump: a loop and its producer share a processor")
  struct EventPumpPreemptionTests {
    struct Ping: Eventable {}
    private final class Count: Sendable { let handled = Atomic<Int>(0) }

    /// Has the calling thread run on one processor alone.
    private static func stay(on processor: Int) {
      // Not visible to Swift, found by its name.
      typealias SetAffinity = @convention(c) (pid_t, Int, UnsafeRawPointer) -> Int32
      let set = unsafeBitCast(dlsym(nil, "sched_setaffinity"), to: SetAffinity.self)
      var processors = [UInt64](repeating: 0, count: 16)
      processors[processor / 64] = 1 << (processor % 64)
      // Where it is refused, the threads are on any, and the test holds all the same.
      _ = set(0, processors.count * 8, processors)
    }

    /// Has the calling thread go before all normal ones; false if that is refused.
    private static func goFirst() -> Bool {
      typealias SetScheduler = @convention(c) (pid_t, Int32, UnsafeRawPointer) -> Int32
      let set = unsafeBitCast(dlsym(nil, "sched_setscheduler"), to: SetScheduler.self)
      // SCHED_FIFO.
      return withUnsafeBytes(of: Int32(10)) { set(0, 1, $0.baseAddress!) } == 0
    }

    private static var processor: Int {
      typealias GetProcessor = @convention(c) () -> Int32
      return Int(unsafeBitCast(dlsym(nil, "sched_getcpu"), to: GetProcessor.self)())
    }

    @Test(
      "D6: a loop on the descriptor does not spin while the thread that woke it has no processor", arguments: cores)
    func noSpin(core: EventCentral.Core) async {
      await offThePool {
        let (central, total) = (EventCentral(core: core), Count())
        let count = shortened(2_000)
        let processor = Self.processor
        let isReady = Gate()
        onThreads(2) { index in
          Self.stay(on: processor)
          guard index == 0 else {
            isReady.pass()
            for sent in 0..<count {
              Ping().queue(on: central)
              // The write of the event has woken the loop, which runs here before this goes on.
              guard waitUntil({ total.handled.load(ordering: .relaxed) > sent }) else { return }
            }
            return
          }
          let pump = EventPump(on: central)
          pump.addEventCallback { (_: Ping) in total.handled.wrappingAdd(1, ordering: .relaxed) }
          isReady.open()
          var (inARow, most) = (0, 0)
          while total.handled.load(ordering: .relaxed) < count {
            var entry = pollfd(fd: pump.fileDescriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 60_000) == 1 else {
              Issue.record("The descriptor was not readable within a minute.")
              return
            }
            inARow = pump.run().handled == 0 ? inARow + 1 : 0
            most = max(most, inARow)
          }
          // Now and then it is readable for nothing.
          #expect(most <= 2)
        }
      }
    }

    @Test(
      "D9: a real-time loop may cancel a repetition in its handler, though the dispatch is not over yet",
      arguments: cores)
    func cancelsInItsHandler(core: EventCentral.Core) async {
      await offThePool {
        let (central, processor, isThere) = (EventCentral(core: core), Self.processor, Gate())
        // The thread of the scheduler calls this. It is made here, as a normal one, and stays on one processor.
        let first = EventPump(on: central) {
          Self.stay(on: processor)
          isThere.open()
        }
        first.addEventCallback { (_: Ping) in }
        Ping().scheduleQueue(after: .milliseconds(50), on: central)
        isThere.pass()
        first.cancel()
        onThreads(1) { _ in
          Self.stay(on: processor)
          guard Self.goFirst() else { return }
          var slow = 0
          for _ in 0..<20 {
            let pump = EventPump(on: central)
            var (handle, took) = (EventScheduleHandle?.none, Duration?.none)
            pump.addEventCallback { (_: Ping) in
              let start = ContinuousClock.now
              handle?.cancel()
              took = start.duration(to: .now)
            }
            handle = Ping().scheduleQueue(every: .milliseconds(1), on: central)
            while took == nil, pump.wait(until: .now + .seconds(60)) { pump.run() }
            if took.map({ $0 > .milliseconds(20) }) != false { slow += 1 }
          }
          // A wait that only yields lasts until the system takes its processor away, 25 ms to a second later: six
          // rounds and more of the twenty. What other threads there are may make it long, too, now and then.
          #expect(slow <= 3)
        }
      }
    }
  }
#endif
