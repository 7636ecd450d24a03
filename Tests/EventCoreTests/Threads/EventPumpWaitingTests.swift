// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("EventPump: what a loop waits on")
struct EventPumpWaitingTests {
  struct Ping: Eventable { var number = 0 }

  private static func isReadable(_ descriptor: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) == 1
  }

  @Test("The descriptor is readable while something waits", arguments: cores)
  func readable(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (ping: Ping) in if ping.number == 9 { Ping().queue(on: central) } }
    let descriptor = pump.fileDescriptor
    #expect(pump.fileDescriptor == descriptor)
    #expect(!Self.isReadable(descriptor))
    for _ in 0..<3 {
      Ping(number: 9).queue(on: central)
      Ping().stack(on: central)
      #expect(Self.isReadable(descriptor))
      #expect(pump.run(limit: 0).waiting == 2)
      #expect(Self.isReadable(descriptor))
      #expect(pump.run(limit: 2).waiting == 1)
      #expect(Self.isReadable(descriptor))
      #expect(pump.run().handled == 1)
      #expect(!Self.isReadable(descriptor))
      #expect(pump.run().handled == 0)
      #expect(!Self.isReadable(descriptor))
    }
  }

  @Test("A descriptor that is made while something waits is readable", arguments: cores)
  func madeLate(core: EventCentral.Core) {
    let pump = EventPump(on: EventCentral(core: core))
    pump.addEventCallback { (_: Ping) in }
    pump.queueEvent(Ping())
    #expect(Self.isReadable(pump.fileDescriptor))
    pump.run()
    #expect(!Self.isReadable(pump.fileDescriptor))
  }

  #if os(Linux)
    @Test("A thousand events signal the descriptor once", arguments: cores)
    func onceForAll(core: EventCentral.Core) {
      let pump = EventPump(on: EventCentral(core: core))
      pump.addEventCallback { (_: Ping) in }
      let descriptor = pump.fileDescriptor
      for _ in 0..<1_000 { pump.queueEvent(Ping()) }
      // The value of an eventfd counts the signals.
      var signals: UInt64 = 0
      #expect(read(descriptor, &signals, 8) == 8)
      #expect(signals == 1)
    }
  #endif

  @Test("A removal elsewhere makes it readable until a run has released the closure", arguments: cores)
  func removal(core: EventCentral.Core) async {
    await offThePool {
      let pump = EventPump(on: EventCentral(core: core))
      let lifetime = Lifetime()
      let handle = pump.addEventCallback { [token = lifetime.token()] (_: Ping) in _ = token }
      let descriptor = pump.fileDescriptor
      onThreads(1) { _ in handle.remove() }
      #expect(Self.isReadable(descriptor))
      #expect(pump.wait())
      #expect(pump.run().handled == 0)
      #expect(lifetime.alive == 0)
      #expect(!Self.isReadable(descriptor))
    }
  }

  @Test("The descriptor is readable after a wait, at whose end on the central's clock an event came", arguments: cores)
  func afterWait(core: EventCentral.Core) async {
    await offThePool {
      for round in 0..<50 {
        let clock = ManualClock()
        let central = EventCentral(core: core, clock: clock)
        let (begun, done) = (Gate(), Gate())
        onThreads(2) { index in
          guard index == 0 else {
            begun.pass()
            // In either order.
            if round % 2 == 0 { Ping().queue(on: central) }
            clock.advance(by: .seconds(1))
            if round % 2 == 1 { Ping().queue(on: central) }
            return done.open()
          }
          let pump = EventPump(on: central)
          pump.addEventCallback { (_: Ping) in }
          let descriptor = pump.fileDescriptor
          let end = central.now + .seconds(1)
          begun.open()
          _ = pump.wait(until: end)
          done.pass()
          #expect(Self.isReadable(descriptor), "round \(round)")
          #expect(pump.run().handled == 1)
        }
      }
    }
  }

  @Test("A schedule that came during a wait, and is due at its end, is something to run", arguments: cores)
  func timerDuringWait(core: EventCentral.Core) async {
    await offThePool {
      for _ in 0..<50 {
        let clock = ManualClock()
        let central = EventCentral(core: core, clock: clock, timers: .pumps)
        let (begun, done) = (Gate(), Gate())
        onThreads(2) { index in
          guard index == 0 else {
            begun.pass()
            Ping().scheduleQueue(after: .seconds(1), on: central)
            clock.advance(by: .seconds(2))
            return done.open()
          }
          let pump = EventPump(on: central)
          pump.addEventCallback { (_: Ping) in }
          let end = central.now + .seconds(2)
          begun.open()
          let isDue = pump.wait(until: end)
          done.pass()
          #expect(isDue)
          #expect(pump.run().handled == 1)
        }
      }
    }
  }

  @Test("D10: an ended pump is not waited for, and its descriptor is readable once at most", arguments: cores)
  func ended(core: EventCentral.Core) async {
    await offThePool {
      let pump = EventPump(on: EventCentral(core: core))
      let descriptor = pump.fileDescriptor
      pump.addEventCallback { (_: Ping) in }
      pump.queueEvent(Ping())
      pump.cancel()
      #expect(!pump.wait())
      pump.run()
      #expect(!Self.isReadable(descriptor))
      #expect(!pump.wait())
    }
  }

  @Test("D9: a pump closes its descriptor", arguments: cores)
  func closes(core: EventCentral.Core) {
    // More than a process may have.
    for _ in 0..<2_000 { #expect(EventPump(on: EventCentral(core: core)).fileDescriptor >= 0) }
  }

  @Test("The wake-up closure is called once for each time that something is to be run", arguments: cores)
  func wakeUps(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    do {
      let log = Log<Void>()
      let pump = EventPump(on: central, wakeUp: { log.append(()) })
      pump.addEventCallback { (_: Ping) in }
      for _ in 0..<3 {
        for _ in 0..<10 { Ping().queue(on: central) }
        #expect(log.take().count == 1)
        #expect(pump.run(limit: 4).waiting == 6)
        #expect(log.take().count == 1)
        #expect(pump.run(limit: 0).waiting == 6)
        #expect(log.take().count == 1)
        pump.run()
        #expect(pump.run(limit: 0).handled == 0)
        #expect(log.take().count == 0)
        // Its time is over, and it leaves nothing: whoever dispatches next wakes the loop.
        for _ in 0..<3 { #expect(pump.run(until: .now - .seconds(1)).handled == 0) }
        #expect(log.take().count == 0)
        #expect(!pump.wait(until: .now - .seconds(1)))
        // Its limit is reached with the last event, which nobody knows yet when its time is over.
        Ping().queue(on: central)
        #expect(pump.run(limit: 1).waiting == 0)
        #expect(log.take().count == 2)
        #expect(pump.run(until: .now - .seconds(1)).handled == 0)
        Ping().queue(on: central)
        #expect(log.take().count == 1)
        #expect(pump.run().handled == 1)
      }
    }
  }

  @Test("wait returns when another thread dispatches, and at its deadline", arguments: cores)
  func waits(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      var next = 0
      pump.addEventCallback { (ping: Ping) in
        #expect(ping.number == next)
        next += 1
      }
      let deadline = ContinuousClock.now + .milliseconds(3)
      #expect(!pump.wait(until: deadline))
      #expect(ContinuousClock.now >= deadline)
      #expect(!pump.wait(until: .now - .seconds(1)))
      let turn = Gate()
      runThread {
        for number in 0..<2_000 {
          Ping(number: number).queue(on: central)
          turn.pass()
        }
      }
      // Each round sleeps, or finds the event there.
      while next < 2_000 {
        #expect(pump.wait(until: .now + .seconds(600)))
        let handled = pump.run().handled
        for _ in 0..<handled { turn.open() }
      }
      #expect(!pump.wait(until: .now))
    }
  }

  /// A socket pair: a thread writes to the first, the loop reads from the second.
  private static func socketPair() -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    #if canImport(Darwin)
      let kind = SOCK_STREAM
    #else
      let kind = Int32(SOCK_STREAM.rawValue)
    #endif
    #expect(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    return (ends[0], ends[1])
  }

  /// Serves a pump and a socket by `poll`, which waits and returns which of the two is readable, while two
  /// threads dispatch and one writes bytes.
  private static func serve(
    _ core: EventCentral.Core, limit: Int, _ makePoll: (_ pump: Int32, _ socket: Int32) -> () -> (Bool, Bool)
  ) {
    let (events, bytes) = (10_000, 2_000)
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let (output, input) = socketPair()
    var (handled, received) = ([Int](repeating: 0, count: 2), 0)
    pump.addEventCallback { (ping: Ping) in
      #expect(ping.number >> 1 == handled[ping.number & 1])
      handled[ping.number & 1] += 1
    }
    let poll = makePoll(pump.fileDescriptor, input)
    let ready = Gate()
    for thread in 0..<2 {
      runThread {
        for number in 0..<events {
          Ping(number: number << 1 | thread).queue(on: central)
          // Now and then the loop gets time to sleep.
          if number % 16 == 0 { sched_yield() }
        }
        ready.open()
      }
    }
    runThread {
      for _ in 0..<bytes { _ = write(output, "x", 1) }
      ready.open()
    }
    while handled != [events, events] || received < bytes {
      let (pumpIsReady, socketIsReady) = poll()
      if pumpIsReady { pump.run(limit: limit) }
      if socketIsReady {
        // One that is edge-triggered has to be read until it is empty.
        var buffer = [UInt8](repeating: 0, count: 64)
        while true {
          let count = recv(input, &buffer, 64, Int32(MSG_DONTWAIT))
          guard count > 0 else { break }
          received += count
        }
      }
    }
    for _ in 0..<3 { ready.pass() }
    #expect(received == bytes)
    close(output)
    close(input)
  }

  @Test("A loop with poll serves a pump and a socket", arguments: cores, [7, Int.max])
  func polled(core: EventCentral.Core, limit: Int) async {
    await offThePool {
      Self.serve(core, limit: limit) { pump, socket in
        {
          var entries = [pump, socket].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
          #expect(poll(&entries, 2, 600_000) > 0)
          return (entries[0].revents != 0, entries[1].revents != 0)
        }
      }
    }
  }

  #if os(Linux)
    @Test("A loop with epoll serves both, level-triggered and edge-triggered", arguments: cores, [false, true])
    func epolled(core: EventCentral.Core, isEdge: Bool) async {
      await offThePool {
        for limit in [7, Int.max] {
          let epoll = EPoll()
          Self.serve(core, limit: limit) { pump, socket in
            epoll.add(pump, isEdge: isEdge)
            epoll.add(socket, isEdge: isEdge)
            return {
              let ready = epoll.wait()
              #expect(!ready.isEmpty)
              return (ready.contains(pump), ready.contains(socket))
            }
          }
        }
      }
    }
  #endif

  @Test("D12: waiting inside a callback of the same pump traps", arguments: cores)
  func waitInside(core: EventCentral.Core) async {
    let isLocking = core == .locking
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      [isLocking = isLocking as Bool] in
      runThread {
        let pump = EventPumpTrapTests.pump(isLocking)
        pump.addEventCallback { (_: Ping) in pump.wait() }
        pump.queueEvent(Ping())
        pump.run()
      }
      try? await Task.sleep(for: .seconds(600))
    }
    expectMessage(result, "EventPump.wait(until:) waits for events that the next run handles")
  }
}

#if os(Linux)
  /// The functions of epoll, which are not visible to Swift, found by their names.
  private final class EPoll {
    #if arch(x86_64)
      // The system packs the structure there.
      private static let (size, data) = (12, 4)
    #else
      private static let (size, data) = (16, 8)
    #endif
    private let descriptor: Int32

    private static func function<F>(_ name: String, _ type: F.Type) -> F {
      unsafeBitCast(dlsym(nil, name), to: type)
    }

    init() {
      descriptor = Self.function("epoll_create1", (@convention(c) (Int32) -> Int32).self)(0)
    }

    deinit { close(descriptor) }

    func add(_ file: Int32, isEdge: Bool) {
      var event = [UInt8](repeating: 0, count: Self.size)
      event.withUnsafeMutableBytes {
        // EPOLLIN, EPOLLET.
        $0.storeBytes(of: isEdge ? 1 | 1 << 31 : 1, as: UInt32.self)
        $0.storeBytes(of: file, toByteOffset: Self.data, as: Int32.self)
        let control = Self.function(
          "epoll_ctl", (@convention(c) (Int32, Int32, Int32, UnsafeMutableRawPointer) -> Int32).self)
        // EPOLL_CTL_ADD.
        #expect(control(descriptor, 1, file, $0.baseAddress!) == 0)
      }
    }

    /// The files that are ready.
    func wait() -> [Int32] {
      var events = [UInt8](repeating: 0, count: 8 * Self.size)
      return events.withUnsafeMutableBytes { events in
        let wait = Self.function(
          "epoll_wait", (@convention(c) (Int32, UnsafeMutableRawPointer, Int32, Int32) -> Int32).self)
        let count = wait(descriptor, events.baseAddress!, 8, 600_000)
        return (0..<max(0, Int(count))).map {
          events.loadUnaligned(fromByteOffset: $0 * Self.size + Self.data, as: Int32.self)
        }
      }
    }
  }
#endif
