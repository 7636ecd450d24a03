// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore

// What a dispatch costs while the consumer is far behind: its handler takes a microsecond.
// Latest-only handlers, and beside them a plain one, whose backlog grows. Checked in every run: the
// newest event is handled, and the core's memory is what it was (a plain backlog would take 64
// bytes an event).
//
//     producer, as fast as it can ──► slot for one event ──► consumer: handler, 1 µs

/// The candidates of this shape.
func latestOnlyCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(
    _ subject: Subject, _ core: EventCentral.Core, _ interest: EventListenerInterest
  ) -> Candidate {
    // In bursts, so that both are measured over the same stretch of time. The plain handler gets fewer
    // events in a burst, since its backlog has to be worked off.
    let events = scale.events(subject)
    return Candidate(
      shape: .latestOnlyFlood, subject: subject, payloadBytes: MemoryLayout<Event24>.size
    ) {
      Flood(subject, core, interest, events: interest == .latestOnly ? events : events / 64)
    }
  }
  return [
    candidate(.lockFree, .lockFree, .latestOnly),
    candidate(.locking, .locking, .latestOnly),
    candidate(.plain, .lockFree, .all),
  ]
}

private final class Flood: Trial {
  private let isConstant: Bool
  private let central: EventCentral
  private let thread: EventThread
  private let finish: Finish
  private let events: Int
  private let bursts = 16

  init(
    _ subject: Subject, _ core: EventCentral.Core, _ interest: EventListenerInterest, events: Int
  ) {
    let finish = Finish()
    self.finish = finish
    self.events = events
    isConstant = interest == .latestOnly
    central = EventCentral(core: core)
    thread = EventThread(on: central, name: "consumer")
    thread.addEventCallback(
      { (event: Event24) in
        if event.weight == events {
          finish.arrive()
        } else {
          evb_pause_for(1_000, true)
        }
      }, interestedIn: interest)
    warmUp()
  }

  /// Sends one event and waits for it, so that both threads have mapped what they need for one
  /// (slots, streams, returns) before a run looks at the memory.
  private func warmUp() {
    finish.expect(1)
    Event24(number: UInt64(events)).queue(on: central)
    _ = finish.wait()
  }

  func run() -> Double {
    let nanoseconds = (0..<bursts).reduce(0) { sum, _ in sum + burst() }
    return Double(nanoseconds) / Double(events * bursts)
  }

  /// Sends the events of a burst, waits until they are handled, and returns the time of the sending.
  private func burst() -> UInt64 {
    finish.expect(1)
    let before = evb_slab_bytes()
    let start = evb_now()
    for number in 1...events {
      Event24(number: UInt64(number)).queue(on: central)
    }
    let nanoseconds = evb_now() - start
    let after = evb_slab_bytes()
    _ = finish.wait()
    // The slots that are on their way back from the consumer may be missed for a slab or two; a
    // plain backlog would take more than 16.
    check(
      !isConstant || after <= before + 2 * 256 * 1024,
      "A flood of latest-only events took \(after - before) bytes.")
    return nanoseconds
  }

  func end() {
    thread.cancel()
    thread.join()
  }
}
