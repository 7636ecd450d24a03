// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the article on loops and of the pump, compiled as a user would.

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("The examples of the article on loops")
struct LoopExamples {
  struct Hit: Eventable {
    var damage = 1
  }

  final class Score: Sendable {
    private let sum = Mutex(0)
    var damage: Int { sum.withLock { $0 } }

    func add(_ damage: Int) { sum.withLock { $0 += damage } }
  }

  final class Game {
    private var frames = 0
    private(set) var damage = 0
    private(set) var late = 0
    var isRunning: Bool { frames < 3 }

    func apply(_ hit: Hit) { damage += hit.damage }

    func simulate(_ step: Int, for length: Duration) { #expect(length == .milliseconds(20)) }

    func draw(between interpolation: Double) {
      #expect((0..<1).contains(interpolation))
      frames += 1
    }

    func draw(late: Int) {
      frames += 1
      self.late += late
    }
  }

  @Test func steps() {
    let (pump, game) = (EventPump(on: EventCentral()), Game())
    pump.addEventCallback { (hit: Hit) in game.apply(hit) }
    pump.queueEvent(Hit())

    var clock = FixedStep(every: .seconds(1) / 50, atMost: 5)
    while game.isRunning {
      for step in clock.steps(until: .now) {
        pump.run(limit: 10_000)             // inside the step: each event reaches exactly one step
        game.simulate(step, for: clock.length)
      }
      game.draw(between: clock.interpolation)
    }

    #expect(game.damage <= 1)
  }

  @Test func waits() async {
    await offThePool {
      let pump = EventPump(on: EventCentral(), wakeUp: {})
      var isServing = true
      func reportIdle() { isServing = false }
      pump.addEventCallback { (_: Hit) in isServing = false }
      pump.queueEvent(Hit())

      while isServing {
        if pump.wait(until: .now + .seconds(1)) { pump.run() } else { reportIdle() }
      }

      #expect(pump.statistics.delivered == 1)
    }
  }

  @Test func awaits() async {
    let (world, game) = (EventCentral(), Strikes())
    let (news, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let pump = EventPump(on: world, wakeUp: { signal.yield() })
    pump.addEventCallback { (hit: Hit) in game.apply(hit) }
    let producer = Task { for _ in 0..<3 { Hit().queue(on: world) } }

    for await _ in news {
      pump.run(limit: 1)     // a run that leaves something wakes the loop again
      if !game.isRunning { break }
    }

    await producer.value
    #expect(pump.statistics.delivered == 3)
  }

  final class Strikes {
    private var left = 3
    var isRunning: Bool { left > 0 }
    func apply(_ hit: Hit) { left -= hit.damage }
  }

  #if os(Linux)
    @Test func descriptors() async {
      await offThePool {
        var sockets: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
        let (socket, other) = (sockets[0], sockets[1])
        let pump = EventPump(on: EventCentral())
        var received = 0
        func receive(from socket: Int32) { received += 1 }
        pump.addEventCallback { (_: Hit) in _ = write(other, "x", 1) }
        pump.queueEvent(Hit())

        var polled = [
          pollfd(fd: pump.fileDescriptor, events: Int16(POLLIN), revents: 0),
          pollfd(fd: socket, events: Int16(POLLIN), revents: 0),
        ]
        while poll(&polled, 2, -1) > 0 {
          if polled[0].revents != 0 { pump.run() }
          if polled[1].revents != 0 { receive(from: socket) }
          if received > 0 { break }
        }

        #expect(received == 1)
        for socket in sockets { close(socket) }
      }
    }
  #endif

  @Test func frames() async {
    let (world, game) = (EventCentral(), Game())

    let pump = EventPump(on: world)
    pump.addEventCallback { (hit: Hit) in game.apply(hit) }

    for damage in 1...3 { Hit(damage: damage).queue(on: world) }
    while game.isRunning {
      let report = pump.run(until: .now + .milliseconds(2), limit: 10_000)
      game.draw(late: report.waiting)
    }

    let (score, node) = (Score(), EventNode())
    Hit.addListener(nil, executeOn: .pump(pump), on: world) { hit in score.add(hit.damage) }
    node.addHandler(executeOn: .pump(pump), of: world) { (hit: Hit) in score.add(hit.damage) }
    let place = pump.place
    let registered = Task {
      Hit.addListener(nil, executeOn: .pump(place), on: world) { hit in score.add(hit.damage) }
    }
    _ = await registered.value
    Hit(damage: 1).scheduleQueue(every: .seconds(1), limit: 60, on: place)
    Hit(damage: 10).queue(on: world)
    node.raise(event: Hit(damage: 100))
    pump.run()
    #expect(score.damage == 120)

    #expect(game.damage == 16)
  }
}
