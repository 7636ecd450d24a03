// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

#if canImport(Glibc)
  import Glibc

  /// Memory tests run in a process of their own, whose memory nobody else changes. A process that finds
  /// too much of it says so and fails.
  @Suite("Stress: threads and callbacks that have ended keep no memory and cost no time", .serialized)
  struct FootprintTests {
    struct Ping: Eventable { var number = 0 }

    final class Receiver: EventThread, @unchecked Sendable {
      // It adds no state.
      override func registerEventListeners() { addEventCallback(Receiver.onPing) }
      func onPing(_ event: Ping) {}
    }

    @Test("D9: the memory of 2,000 event threads goes back to the system when they have ended")
    func threads() async {
      await #expect(processExitsWith: .success) {
        for core in cores {
          // The first threads leave what the process keeps for good.
          Footprint.makeThreads(50, core)
          let before = Footprint.resident()
          Footprint.makeThreads(2_000 / Footprint.less, core)
          Footprint.expect(atMost: 24 << 20, above: before, "2,000 event threads on \(core)")
        }
      }
    }

    @Test("D6: 30,000 callbacks that come and go on a busy thread leave next to nothing")
    func callbacks() async {
      await #expect(processExitsWith: .success) {
        for core in cores {
          let central = EventCentral(core: core)
          let thread = EventThread(on: central)
          // So that the thread never sleeps.
          thread.addEventCallback { [unowned thread] (ping: Ping) in
            thread.queueEvent(Ping(number: ping.number + 1))
          }
          thread.queueEvent(Ping())
          Footprint.makeCallbacks(3_000, thread)
          let before = Footprint.resident()
          Footprint.makeCallbacks(30_000 / Footprint.less, thread)
          Footprint.expect(atMost: 1 << 20, above: before, "30,000 callbacks on \(core)")
          thread.cancel()
          await thread.join()
        }
      }
    }

    @Test("D9: a process with pumps alone frees in their runs what 30,000 callbacks have left, on no other thread")
    func pumps() async {
      await #expect(processExitsWith: .success) {
        for core in cores {
          let central = EventCentral(core: core)
          let pump = EventPump(on: central)
          Footprint.makeCallbacks(3_000, pump)
          let before = Footprint.resident()
          Footprint.makeCallbacks(30_000 / Footprint.less, pump)
          // At once: there is nobody else who would free it later.
          precondition(Footprint.resident() - before <= 1 << 20 || isSanitized)
        }
        // A listener of another central, whose events are handled as those of the pump.
        let pump = EventPump(on: EventCentral(core: .locking))
        let other = EventCentral()
        Footprint.makeListeners(2_000, pump, other)
        let before = Footprint.resident()
        Footprint.makeListeners(10_000 / Footprint.less, pump, other)
        precondition(Footprint.resident() - before <= 2 << 20 || isSanitized)
        precondition(threadNames().isEmpty)
      }
    }

    @Test("D5: what a thread has reserved is there before its first events, and as much more is not")
    func reserve() async {
      await #expect(processExitsWith: .success) {
        // On the locking core a reserve does nothing, as it says.
        for core in cores where core != .locking {
          let central = EventCentral(core: core)
          let pump = EventPump(on: central)
          pump.addEventCallback { (ping: Ping) in }
          Ping().queue(on: central)
          central.reserve(20_000)
          for events in [0, 1 << 20] {
            let before = Footprint.resident()
            for number in 0..<20_000 { Ping(number: number).queue(on: central) }
            let more = Footprint.resident() - before
            // A page or two may go meanwhile, of something else.
            precondition(
              isSanitized || more > events - 1 << 16 && more < events + 1 << 19, "\(more) bytes for 20,000 events")
          }
        }
      }
    }

    @Test("D5: 10,000 short-lived producers and receivers take less than a minute", arguments: cores)
    func shortLived(core: EventCentral.Core) {
      let central = EventCentral(core: core)
      let clock = ContinuousClock()
      let start = clock.now
      // Two receivers and two producers at a time, each on a thread of its own, which ends.
      onThreads(2) { _ in
        for number in 0..<5_000 / Footprint.less {
          let receiver = Receiver(on: central)
          onThreads(1) { _ in
            Ping(number: number).queue(on: central)
            receiver.queueEvent(Ping(number: number))
          }
          #expect(receiver.drain())
          #expect(receiver.statistics.delivered >= 2)
        }
      }
      #expect(start.duration(to: clock.now) < .seconds(60))
    }
  }

  /// The memory of this process.
  enum Footprint {
    /// How many times less a test does there, where its memory is not judged, and each step costs ten times as much.
    static var less: Int { isSanitized ? 10 : 1 }

    /// Bytes in physical memory, without what the system's allocator keeps for the next time.
    static func resident() -> Int {
      if let trim = dlsym(nil, "malloc_trim") {
        _ = unsafeBitCast(trim, to: (@convention(c) (Int) -> CInt).self)(0)
      }
      var text = [UInt8](repeating: 0, count: 128)
      let file = open("/proc/self/statm", O_RDONLY)
      let count = read(file, &text, text.count)
      precondition(count > 0, "/proc/self/statm cannot be read.")
      close(file)
      let words = String(decoding: text.prefix(count), as: UTF8.self).split(separator: " ")
      return Int(words[1])! * sysconf(Int32(_SC_PAGESIZE))
    }

    /// How much memory the process has at most while something runs, above what it had before.
    final class Growth {
      private let before = Footprint.resident()
      private var most = 0
      private var samples = 0

      func sample() {
        most = max(most, Footprint.resident() - before)
        samples += 1
      }

      /// Ends the process if it was ever more than `bytes`.
      func expect(atMost bytes: Int, _ what: String) {
        precondition(samples >= 10, "\(what): \(samples) samples are too few.")
        guard !isSanitized else { return }
        precondition(most <= bytes, "\(what) took \(most) bytes.")
      }
    }

    /// Ends the process unless its memory comes back to at most `bytes` above `before`. A thread gives
    /// its memory back as it ends, a moment after it is joined.
    static func expect(atMost bytes: Int, above before: Int, _ what: String) {
      guard !isSanitized else { return }
      let deadline = DispatchTime.now() + .seconds(60)
      while true {
        let more = resident() - before
        if more <= bytes { return }
        precondition(DispatchTime.now() < deadline, "\(what) left \(more) bytes.")
        sched_yield()
      }
    }

    /// Makes `count` event threads, has each handle an event, and ends them.
    static func makeThreads(_ count: Int, _ core: EventCentral.Core) {
      let central = EventCentral(core: core)
      let threads = (0..<count).map { _ in FootprintTests.Receiver(on: central) }
      precondition(FootprintTests.Ping().queue(on: central) == count)
      for thread in threads { precondition(thread.drain()) }
    }

    /// Adds `count` callbacks to a thread and removes them, one after the other.
    static func makeCallbacks(_ count: Int, _ thread: EventThread) {
      for number in 0..<count {
        let handle = thread.addEventCallback { (ping: FootprintTests.Ping) in
          withExtendedLifetime(number) {}
        }
        if number % 2 == 0 { handle.remove() } else { handle.removeAndWait() }
      }
    }

    /// Adds `count` listeners of a central to a pump and removes them.
    static func makeListeners(_ count: Int, _ pump: EventPump, _ central: EventCentral) {
      for _ in 0..<count {
        FootprintTests.Ping.addListener(nil, executeOn: .pump(pump.place), on: central) { _ in }.remove()
        pump.run()
      }
    }

    /// The same for a pump, with a run after each change.
    static func makeCallbacks(_ count: Int, _ pump: EventPump) {
      for number in 0..<count {
        let handle = pump.addEventCallback { (ping: FootprintTests.Ping) in
          withExtendedLifetime(number) {}
        }
        FootprintTests.Ping().queue(on: pump.central)
        pump.run()
        handle.remove()
        pump.run()
      }
    }
  }
#endif
