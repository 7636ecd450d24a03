// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import RawCore

// Frames of 240 Hz with a budget of 2 ms: two producers send 5,000 events each as soon as a frame begins, and the
// pump handles what has come until the budget is spent. How long the pumps take, and how many of them end later
// than the budget and one handler. Checked in every run: each event was handled.
//
//     2 producers: 5,000 events each ──► central ──► pump, until 2 ms after the frame began ──► next frame
//                    ▲────────────────────── every 4.17 ms ───────────────────────────────────────┘

private let framesOfRun = 240
private let eventsOfProducer: UInt64 = 5_000
private let period: UInt64 = 1_000_000_000 / 240
private let budget: UInt64 = 2_000_000
/// A handler that adds takes some nanoseconds; a look at the clock may come up to two microseconds after it.
private let allowance: UInt64 = 2_000

/// The candidates of both shapes.
func frameCandidates(_ scale: Scale) -> [Candidate] {
  [Shape.frames240, .frames240Overruns].flatMap { shape in
    [(Subject.lockFree, EventCentral.Core.lockFree), (.locking, .locking)].map { subject, core in
      Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
        Frames240(core, countsOverruns: shape == .frames240Overruns)
      }
    }
  }
}

private final class Frames240: Trial {
  private final class Sum {
    var count: UInt64 = 0
    var weight: UInt64 = 0
  }
  private let central: EventCentral
  private let pump: EventPump
  private let sum = Sum()
  private let countsOverruns: Bool

  init(_ core: EventCentral.Core, countsOverruns: Bool) {
    central = EventCentral(core: core)
    pump = EventPump(on: central)
    self.countsOverruns = countsOverruns
    pump.addEventCallback { [sum] (event: Event24) in
      sum.count &+= 1
      sum.weight &+= event.weight
    }
  }

  func run() -> Double {
    (sum.count, sum.weight) = (0, 0)
    let (begin, done) = (DispatchSemaphore(value: 0), DispatchGroup())
    for _ in 0..<2 {
      let central = central
      Thread240.start(done) {
        for _ in 0..<framesOfRun {
          begin.wait()
          for number in 1...eventsOfProducer { Event24(number: number).queue(on: central) }
        }
      }
    }
    var times: [UInt64] = []
    var overruns = 0
    var next = evb_now()
    for _ in 0..<framesOfRun {
      begin.signal()
      begin.signal()
      let start = evb_now()
      // Again and again, as a loop does that has nothing else to do in its budget.
      var spent: UInt64 = 0
      repeat {
        pump.run(until: .now + .nanoseconds(budget - spent))
        spent = evb_now() - start
      } while spent < budget && sum.count < UInt64(times.count + 1) * 2 * eventsOfProducer
      times.append(spent)
      if spent > budget + allowance { overruns += 1 }
      next += period
      let now = evb_now()
      if now < next { evb_pause_for(next - now, false) } else { next = now }
    }
    done.wait()
    pump.run()
    let each = eventsOfProducer * (eventsOfProducer + 1) / 2
    check(
      sum.count == UInt64(framesOfRun) * 2 * eventsOfProducer
        && sum.weight == UInt64(framesOfRun) * 2 * each,
      "A pump has handled \(sum.count) events.")
    times.sort()
    return countsOverruns ? Double(overruns) : Double(times[times.count * 999 / 1_000])
  }

  func end() {
    pump.cancel()
    pump.run()
  }
}

/// A thread of its own for a producer.
private enum Thread240 {
  static func start(_ group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "producer").async(group: group, execute: body)
  }
}
