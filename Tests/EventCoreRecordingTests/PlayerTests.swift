// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Synchronization
import Testing

@testable import EventCoreRecording

@Suite("Replaying: when")
struct PlayerTests {
  /// A clock whose sleepers move it, so that nobody waits.
  final class JumpingClock: Clock {
    struct Instant: InstantProtocol {
      var elapsed: Duration
      func advanced(by duration: Duration) -> Self { Self(elapsed: elapsed + duration) }
      func duration(to other: Self) -> Duration { other.elapsed - elapsed }
      static func < (lhs: Self, rhs: Self) -> Bool { lhs.elapsed < rhs.elapsed }
    }

    private let time = Mutex(Instant(elapsed: .seconds(100)))
    let sleeps = Log<Duration>()
    var now: Instant { time.withLock { $0 } }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
      sleeps.append(deadline.elapsed - .seconds(100))
      time.withLock { $0 = max($0, deadline) }
    }
  }

  /// Marks 0, 1, 2 … at times, in nanoseconds after the start.
  private static func recording(at times: [UInt64]) throws -> EventRecording {
    var writer = BinaryFrameWriter(start: 1000, types: ["Mark"])
    for (number, time) in times.enumerated() {
      writer.add(Record(time: 1000 + time, type: 0, lane: 7), try encodePayload(Mark(number)))
    }
    writer.end(left: 0)
    return try EventRecording(Data(writer.bytes), of: [Mark.self])
  }

  @Test("Step by step: everything up to a time, which is included", arguments: cores)
  func steps(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    var seen: [Int] = []
    pump.addEventCallback { (mark: Mark) in seen.append(mark.number) }
    var player = try Self.recording(at: [0, 10, 10, 25, 40]).player(on: central)
    #expect(player.nextTime == DispatchTime(uptimeNanoseconds: 1000))
    #expect(try player.advance(to: .nanoseconds(-1)) == 0)
    #expect(try player.advance(to: .zero) == 1)
    #expect(try player.advance(to: .nanoseconds(10)) == 2)
    #expect(try player.advance(to: .nanoseconds(5)) == 0)
    var other = player
    #expect(try player.advance(to: DispatchTime(uptimeNanoseconds: 1024)) == 0)
    #expect(player.nextTime == DispatchTime(uptimeNanoseconds: 1025))
    #expect(try player.step())
    #expect(try player.advance(to: .distantFuture) == 1)
    #expect(player.nextTime == nil)
    #expect(try !player.step())
    #expect(player.position == 5)
    pump.run()
    #expect(seen == [0, 1, 2, 3, 4])
    // A copy goes on by itself.
    #expect(try other.advance(to: .seconds(Int64.max)) == 2)
  }

  @Test("At a speed: each event at its time, without drift", arguments: cores, [1, 0.5, 4])
  func speeds(core: EventCentral.Core, speed: Double) async throws {
    let (central, clock) = (EventCentral(core: core), JumpingClock())
    let log = Log<Int>()
    let thread = EventThread(on: central)
    thread.addEventCallback { (mark: Mark) in log.append(mark.number) }
    let times: [UInt64] = [100, 100, 2_000_000_000, 2_000_000_400]
    let count = try await Self.recording(at: times).replay(on: central, speed: speed, clock: clock)
    #expect(count == 4)
    #expect(await thread.drain())
    #expect(log.entries == [0, 1, 2, 3])
    #expect(clock.sleeps.entries == [100, 2_000_000_000, 2_000_000_400].map { .nanoseconds(Int64(Double($0) / speed)) })
  }

  @Test("On a manual clock a recording has its times, and so has a replay that moves one", arguments: cores)
  func manualClock(core: EventCentral.Core) throws {
    try withFile { file in
      let (clock, again) = (ManualClock(), ManualClock())
      let central = EventCentral(deterministic: 3, core: core, clock: clock)
      let start = central.now
      let recorder = try EventRecorder(central, of: [Mark.self], to: file)
      for number in 0..<5 {
        clock.advance(by: .milliseconds(number))
        Mark(number).queue(on: central)
      }
      central.run()
      #expect(try recorder.finish().recorded == 5)
      let recording = try EventRecording(contentsOf: file, of: [Mark.self])
      #expect(recording.start == start)
      let other = EventCentral(deterministic: 4, core: core, clock: again)
      let (thread, times) = (EventThread(on: other), Log<DispatchTime>())
      thread.addEventCallback { (_: Mark, _, time) in times.append(time) }
      var player = recording.player(on: other)
      while let next = player.nextTime {
        again.advance(by: .nanoseconds(Int64(next.uptimeNanoseconds - other.now.uptimeNanoseconds)))
        #expect(try player.step())
        other.run()
      }
      #expect(times.entries == [0, 1, 3, 6, 10].map { start + .milliseconds($0) })
      thread.cancel()
    }
  }

  @Test("At the least of speeds it waits as long as a duration lasts", arguments: cores)
  func least(core: EventCentral.Core) async throws {
    let (central, clock) = (EventCentral(core: core), JumpingClock())
    let recording = try Self.recording(at: [3_600_000_000_000])
    #expect(try await recording.replay(on: central, speed: .leastNonzeroMagnitude, clock: clock) == 1)
    #expect(clock.sleeps.entries == [.nanoseconds(Int64.max)])
  }

  @Test("At full speed nothing waits", arguments: cores)
  func full(core: EventCentral.Core) async throws {
    let (central, clock) = (EventCentral(core: core), JumpingClock())
    #expect(try await Self.recording(at: [5, 1_000_000_000]).replay(on: central, speed: .infinity, clock: clock) == 2)
    #expect(clock.sleeps.entries == [])
    #expect(try await Self.recording(at: []).replay(on: central) == 0)
  }

  @Test("A task that is cancelled ends its replay")
  func cancelled() async throws {
    let recording = try Self.recording(at: [0, 3_600_000_000_000])
    let central = EventCentral()
    let pump = EventPump(on: central)
    var seen = 0
    pump.addEventCallback { (mark: Mark) in seen += 1 }
    let task = Task { try await recording.replay(on: central) }
    #expect(await yieldUntil { pump.eventCount == 1 })
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    pump.run()
    #expect(seen == 1)
  }

  @Test("A payload that is none of its type is an error with its place, and the next call goes on behind it")
  func undecodable() throws {
    var writer = BinaryFrameWriter(start: 0, types: ["Mark"])
    writer.add(Record(time: 1, type: 0, lane: 7), try encodePayload(Mark(1)))
    let place = writer.bytes.count
    writer.add(Record(time: 2, type: 0, lane: 7), Data(#"{"number":"two"}"#.utf8))
    writer.add(Record(time: 3, type: 0, lane: 7), try encodePayload(Mark(3)))
    writer.end(left: 0)
    let central = EventCentral()
    let pump = EventPump(on: central)
    var seen: [Int] = []
    pump.addEventCallback { (mark: Mark) in seen.append(mark.number) }
    var player = try EventRecording(Data(writer.bytes), of: [Mark.self]).player(on: central)
    let error = #expect(throws: EventRecordingError.self) { try player.advance(to: .distantFuture) }
    #expect(error?.reason == .undecodable)
    #expect(error?.recordNumber == 2)
    // Behind the length, the lane, the type and the time.
    #expect(error?.byteOffset == place + 4)
    #expect(player.position == 2)
    #expect(try player.advance(to: .distantFuture) == 1)
    pump.run()
    #expect(seen == [1, 3])
  }

  @Test("A speed that is not above zero traps with a sentence (D12)", arguments: [0, -1.5])
  func wrongSpeed(speed: Double) async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [speed = speed as Double] in
      let recording = try EventRecording(
        Data(BinaryFormat.magic), of: [Mark.self], accepting: [.damaged])
      _ = try await recording.replay(speed: speed)
    }
    expectMessage(result, "The speed of a replay is above zero")
  }
}
