// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore

// Frames of 1,000 events on one thread: posted, then handled by a pump, with a deadline that is a second
// away and without one. Checked in every run: each event was handled, and none was left.
//
//     ┌──► 1,000 events ──► central ──► pump: handler ──┐
//     └──────────────────── next frame ◄────────────────┘

private let eventsOfFrame = 1_000

/// The candidates of this shape.
func pumpCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(_ subject: Subject, _ make: @escaping (Int) -> any Trial) -> Candidate {
    Candidate(shape: .pumpFrame, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
      make(scale.events(.lockFree) / eventsOfFrame)
    }
  }
  return [
    candidate(.lockFree) { Frames(.lockFree, $0, hasDeadline: false) },
    candidate(.deadline) { Frames(.lockFree, $0, hasDeadline: true) },
    candidate(.locking) { Frames(.locking, $0, hasDeadline: false) },
    candidate(.rawC) { RawFrames($0, hasDeadline: false) },
    candidate(.rawCDeadline) { RawFrames($0, hasDeadline: true) },
  ]
}

private final class Frames: Trial {
  private final class Sum {
    var count: UInt64 = 0
    var weight: UInt64 = 0
  }
  private let central: EventCentral
  private let pump: EventPump
  private let sum = Sum()
  private let frames: Int
  private let hasDeadline: Bool

  init(_ core: EventCentral.Core, _ frames: Int, hasDeadline: Bool) {
    central = EventCentral(core: core)
    pump = EventPump(on: central)
    (self.frames, self.hasDeadline) = (frames, hasDeadline)
    pump.addEventCallback { [sum] (event: Event24) in
      sum.count &+= 1
      sum.weight &+= event.weight
    }
  }

  func run() -> Double {
    (sum.count, sum.weight) = (0, 0)
    var number: UInt64 = 0
    let start = evb_now()
    for _ in 0..<frames {
      for _ in 0..<eventsOfFrame {
        number &+= 1
        pump.queueEvent(Event24(number: number))
      }
      let report = pump.run(until: hasDeadline ? .now + .seconds(1) : nil)
      check(report.waiting == 0, "A frame left \(report.waiting) events.")
    }
    let end = evb_now()
    check(
      sum.count == number && sum.weight == number * (number + 1) / 2,
      "A pump has handled \(sum.count) of \(number) events.")
    return Double(end - start) / Double(number)
  }

  func end() { pump.cancel() }
}

private final class RawFrames: Trial {
  private let pump = evb_pump_open()
  private let frames: Int
  private let hasDeadline: Bool

  init(_ frames: Int, hasDeadline: Bool) {
    (self.frames, self.hasDeadline) = (frames, hasDeadline)
  }

  func run() -> Double {
    let time = evb_pump_run(pump, UInt64(frames), UInt64(eventsOfFrame), hasDeadline)
    return Double(time) / Double(frames * eventsOfFrame)
  }

  func end() { evb_pump_close(pump) }
}
