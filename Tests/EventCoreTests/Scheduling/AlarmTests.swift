// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

/// A clock that stands still, and ends the sleeps that it is told to end.
private final class StandingClock: Clock {
  struct Instant: InstantProtocol {
    var time = Duration.zero
    func advanced(by duration: Duration) -> Instant {
      StandingClock.whenSet?()
      return Instant(time: time + duration)
    }
    func duration(to other: Instant) -> Duration { other.time - time }
    static func < (one: Instant, other: Instant) -> Bool { one.time < other.time }
  }

  /// Called on the thread that sets an alarm, before it is set.
  @TaskLocal static var whenSet: (@Sendable () -> Void)?
  /// Of all sleeps that have begun, in this order.
  let sleeps = Guarded<[Latch]>([])
  let sleeping = Atomic<Int>(0)

  var now: Instant { Instant() }
  var minimumResolution: Duration { .nanoseconds(1) }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    let latch = Latch()
    sleeping.add(1, ordering: .relaxed)
    defer { sleeping.subtract(1, ordering: .relaxed) }
    sleeps.withLock { $0.append(latch) }
    guard await latch.opened(until: nil) else { throw CancellationError() }
  }
}

@Suite("What a scheduler asks of the clock of its central")
struct AlarmTests {
  private struct Tick: Eventable {}

  @Test("D10: an alarm that rings while another replaces it leaves that to the end of the central", arguments: cores)
  func ringsWhileReplaced(core: EventCentral.Core) async {
    for _ in 0..<20 {
      let clock = StandingClock()
      await offThePool {
        let central = EventCentral(core: core, clock: clock)
        Tick().scheduleQueue(after: .seconds(100), on: central)
        #expect(waitUntil { clock.sleeps.withLock { $0.count } == 1 })
        let ring: @Sendable () -> Void = {
          clock.sleeps.withLock { $0[0] }.open()
          #expect(waitUntil { clock.sleeping.load(ordering: .relaxed) == 0 })
          // Until the ring waits for the lock that this thread has, most times: nothing tells that.
          for _ in 0..<1_000 { yieldThread() }
        }
        StandingClock.$whenSet.withValue(ring) {
          _ = Tick().scheduleQueue(after: .seconds(50), on: central)
        }
        #expect(waitUntil { clock.sleeps.withLock { $0.count } >= 2 })
      }
      guard await yieldUntil({ clock.sleeping.load(ordering: .relaxed) == 0 }) else {
        Issue.record("An alarm outlives its central.")
        return
      }
    }
  }
}
