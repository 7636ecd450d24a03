// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

#if canImport(Glibc)
  @Suite("Stress: bounded mailboxes under overload", .serialized)
  struct OverloadTests {
    struct Sample: Eventable { var number: Int }

    @Test("a producer twice as fast as its consumer: memory stays flat, and each event is accounted for")
    func overload() async {
      // A minute for each policy and core in the long tests. A process of its own, whose memory nobody else changes.
      await #expect(processExitsWith: .success) {
        for core in cores {
          let policies: [EventOverflowPolicy] = [.refuse, .dropNewest, .dropOldest, .block(upTo: .microseconds(100))]
          for policy in policies {
            Overload(core, policy).run(for: stressFactor == 1 ? .milliseconds(200) : .seconds(60))
          }
        }
      }
    }
  }

  /// One producer and one event thread, whose handler takes twice as long as the producer does.
  private final class Overload: Sendable {
    private let name: String
    private let central: EventCentral
    private let thread: EventThread
    private let handled = Guarded((count: 0, last: 0))
    private let capacity = 1_000

    init(_ core: EventCentral.Core, _ policy: EventOverflowPolicy) {
      name = "\(policy) on \(core)"
      central = EventCentral(core: core)
      thread = EventThread(on: central, mailbox: .bounded(capacity, whenFull: policy))
      thread.addEventCallback { [handled] (sample: OverloadTests.Sample) in
        Self.work(400)
        handled.withLock {
          precondition($0.last < sample.number, "Out of order.")
          $0 = ($0.count + 1, sample.number)
        }
      }
    }

    private static func work(_ iterations: Int) {
      for number in 0..<iterations { blackHole.store(number, ordering: .relaxed) }
    }
    private static let blackHole = Atomic<Int>(0)

    func run(for length: Duration) {
      let (clock, before) = (ContinuousClock(), Footprint.resident())
      let end = clock.now.advanced(by: length)
      var (sent, accepted) = (0, 0)
      while clock.now < end {
        for _ in 0..<100 {
          sent += 1
          accepted += OverloadTests.Sample(number: sent).queue(on: central)
          Self.work(200)
        }
      }
      // An unbounded mailbox would keep 64 bytes of an event, of which there are millions in the long run.
      Footprint.expect(atMost: 2 << 20, above: before, "Overload, \(name),")
      precondition(thread.drain(), "The thread did not drain.")
      let (statistics, count) = (thread.mailboxStatistics, handled.withLock { $0.count })
      precondition(statistics.accepted == accepted && statistics.refused == sent - accepted, "\(name): \(statistics)")
      precondition(Int(statistics.dropped) + count == accepted && statistics.waiting == 0, "\(name): \(statistics)")
      precondition(statistics.highWaterMark <= capacity, "\(name): \(statistics)")
    }
  }
#endif
