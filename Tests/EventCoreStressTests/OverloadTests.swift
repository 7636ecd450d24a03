// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

#if canImport(Glibc)
  @Suite("Stress: bounded mailboxes under overload", .serialized)
  struct OverloadTests {
    struct Beat: Eventable {}
    struct Sample: Eventable {
      var number: Int
      /// So large that a mailbox that kept what it should not would show in the short run.
      var payload: [UInt8]
    }

    @Test("a producer twice as fast as its consumer: memory stays flat, and each event is accounted for")
    func overload() async {
      // A process of its own, whose memory nobody else changes.
      await #expect(processExitsWith: .success) {
        Overload.run()
      }
    }
  }

  /// One producer and one event thread, which handles one event for each two that the producer sends: that many
  /// permits it gets. So the load is the same on each machine, and far below a processor: all pairs run at once.
  private final class Overload: Sendable {
    private static let (capacity, sentInRound, leastRounds) = (20, 20, 100)
    private let name: String
    private let central: EventCentral
    private let thread: EventThread
    private let producer: EventThread
    private let permits = DispatchSemaphore(value: 0)
    private let handled = Guarded((count: 0, last: 0))
    private let sent = Guarded((rounds: 0, accepted: 0))

    /// All policies on all cores at once, for a minute in the long tests.
    static func run() {
      let policies: [EventOverflowPolicy] = [.refuse, .dropNewest, .dropOldest, .block(upTo: .microseconds(100))]
      let world = EventCentral()
      let pairs = cores.flatMap { core in policies.map { Overload(core, $0, beats: world) } }
      let memory = Footprint.Growth()
      let pump = EventPump(on: world)
      // Each 10 ms; in the long run each second.
      let interval = stressFactor == 1 ? 10 : 1_000
      var beats = 0
      pump.addEventCallback { (_: OverloadTests.Beat) in
        beats += 1
        if beats % interval == 0 { memory.sample() }
      }
      let end = ContinuousClock.now + (stressFactor == 1 ? .milliseconds(200) : .seconds(60))
      let timer = OverloadTests.Beat().scheduleQueue(every: .milliseconds(1), on: world)
      while ContinuousClock.now < end || !pairs.allSatisfy(\.hasDoneEnough) {
        pump.wait()
        pump.run()
      }
      timer.cancel()
      memory.sample()
      memory.expect(atMost: 2 << 20, "Overload")
      for pair in pairs { pair.finish() }
      pump.cancel()
      pump.run()
    }

    init(_ core: EventCentral.Core, _ policy: EventOverflowPolicy, beats: EventCentral) {
      name = "\(policy) on \(core)"
      central = EventCentral(core: core)
      thread = EventThread(on: central, mailbox: .bounded(Self.capacity, whenFull: policy))
      producer = EventThread(on: beats)
      thread.addEventCallback { [handled, permits] (sample: OverloadTests.Sample) in
        permits.wait()
        handled.withLock {
          precondition($0.last < sample.number, "Out of order.")
          $0 = ($0.count + 1, sample.number)
        }
      }
      producer.addEventCallback(
        { [unowned self] (_: OverloadTests.Beat) in sendRound() }, interestedIn: .latestOnly)
    }

    private func sendRound() {
      for _ in 0..<Self.sentInRound / 2 { permits.signal() }
      sent.withLock {
        for number in 1...Self.sentInRound {
          let payload = [UInt8](repeating: 1, count: 4_096)
          $0.accepted += OverloadTests.Sample(number: $0.rounds * Self.sentInRound + number, payload: payload)
            .queue(on: central)
        }
        $0.rounds += 1
      }
    }

    var hasDoneEnough: Bool { sent.withLock { $0.rounds >= Self.leastRounds } }

    /// Ends both, and ends the process unless each event is accounted for.
    func finish() {
      precondition(producer.drain(), "The producer did not drain.")
      for _ in 0...Self.capacity { permits.signal() }
      precondition(thread.drain(), "The thread did not drain.")
      let (statistics, count) = (thread.mailboxStatistics, handled.withLock { $0.count })
      let (rounds, accepted) = sent.withLock { $0 }
      let sent = rounds * Self.sentInRound
      precondition(statistics.accepted == accepted && statistics.refused == sent - accepted, "\(name): \(statistics)")
      precondition(Int(statistics.dropped) + count == accepted && statistics.waiting == 0, "\(name): \(statistics)")
      precondition(statistics.highWaterMark == Self.capacity, "\(name): \(statistics)")
      // What neither the permits nor the bound let through.
      let lost = Int(statistics.refused + statistics.dropped)
      precondition(lost >= sent / 2 - Self.capacity - 1, "\(name): \(lost) of \(sent) are too few.")
    }
  }
#endif
