// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore

// As the flood of latest-only events, over 1,000 keys: what a dispatch costs while the consumer is far
// behind, since its handler takes a microsecond. Checked in every run: the newest event of each key is
// handled, and the core's memory is what it was.
//
//     producer, as fast as it can ──► a cell for each of 1,000 keys ──► consumer: handler, 1 µs

private let keys: UInt64 = 1_000

/// An event of 24 bytes with one of a thousand keys.
private struct KeyedEvent: Conflatable {
  let weight: UInt64
  let x = 1.0
  let y = 2.0
  var conflationKey: UInt64 { weight % keys }
}

/// The candidates of this shape.
func conflatedCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(_ subject: Subject, _ make: @escaping (Int) -> any Trial) -> Candidate {
    Candidate(
      shape: .conflatedFlood, subject: subject, payloadBytes: MemoryLayout<KeyedEvent>.size
    ) { make(scale.events(subject)) }
  }
  return [
    candidate(.lockFree) { KeyedFlood(.lockFree, events: $0) },
    candidate(.locking) { KeyedFlood(.locking, events: $0) },
    candidate(.rawC) { RawFlood(events: $0) },
  ]
}

private final class KeyedFlood: Trial {
  private let central: EventCentral
  private let thread: EventThread
  private let finish = Finish()
  private let events: UInt64
  /// The consumer's, between the beginning of a burst and its end.
  private final class Newest: @unchecked Sendable {
    var numbers = [UInt64](repeating: 0, count: Int(keys))
    /// Until the first burst has ended.
    var isCold = true
  }
  private let newest = Newest()

  init(_ core: EventCentral.Core, events: Int) {
    self.events = UInt64(events)
    central = EventCentral(core: core)
    thread = EventThread(on: central, name: "consumer")
    thread.addEventCallback(
      { [newest, finish, end = UInt64(events)] (event: KeyedEvent) in
        newest.numbers[Int(event.conflationKey)] = event.weight
        if event.weight + keys > end { finish.arrive() } else { evb_pause_for(1_000, true) }
      }, interestedIn: .latestPerKey)
    // So that all cells and slots are there.
    _ = burst()
  }

  func run() -> Double { Double(burst()) / Double(events) }

  /// Sends the events, waits until the last of each key is handled, and returns the time of the sending.
  private func burst() -> UInt64 {
    finish.expect(Int(keys))
    let before = evb_slab_bytes()
    let start = evb_now()
    for number in 1...events {
      KeyedEvent(weight: number).queue(on: central)
    }
    let nanoseconds = evb_now() - start
    let after = evb_slab_bytes()
    _ = finish.wait()
    check(
      newest.numbers.allSatisfy { $0 + keys > events },
      "The newest event of a key was not handled last.")
    // The slots that are on their way back from the consumer may be missed for a slab or two; without
    // conflation they would be more than 100.
    check(
      newest.isCold || after <= before + 2 * 256 * 1024,
      "A flood of conflated events took \(after - before) bytes.")
    newest.isCold = false
    return nanoseconds
  }

  func end() {
    thread.cancel()
    thread.join()
  }
}

private final class RawFlood: Trial {
  private let raw = evb_conflated_open(keys)
  private let events: Int

  init(events: Int) {
    self.events = events
    _ = evb_conflated_run(raw, UInt64(events))
  }

  func run() -> Double { Double(evb_conflated_run(raw, UInt64(events))) / Double(events) }

  func end() { evb_conflated_close(raw) }
}
