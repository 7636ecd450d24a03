// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore

// Frames of 1,000 events on one thread: posted, one by one or in batches of 50, then handled by a pump, with a
// deadline that is a second away and without one. Checked in every run: each event was handled, and none was left.
//
//     ┌──► 1,000 events ──► pump: handler ──┐        those of `central`, `raw-c` and the batches through the router of
//     └────────────── next frame ◄──────────┘        a central, which finds the pump

private let eventsOfFrame = 1_000

private let eventsOfBatch = 50

/// The candidates of these shapes.
func pumpCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(_ shape: Shape, _ subject: Subject, _ make: @escaping (Int) -> any Trial) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
      make(scale.events(.lockFree) / eventsOfFrame)
    }
  }
  return [
    candidate(.pumpFrame, .lockFree) { Frames(.lockFree, $0) },
    candidate(.pumpFrame, .central) { CentralFrames(.lockFree, $0) },
    candidate(.pumpFrame, .deadline) { Frames(.lockFree, $0, hasDeadline: true) },
    candidate(.pumpFrame, .locking) { Frames(.locking, $0) },
    candidate(.pumpFrame, .lockingDeadline) { Frames(.locking, $0, hasDeadline: true) },
    candidate(.pumpFrame, .rawC) { RawFrames($0) },
    candidate(.pumpFrame, .rawCDeadline) { RawFrames($0, hasDeadline: true) },
    candidate(.pumpBatch50, .lockFree) { BatchFrames(.lockFree, $0) },
    candidate(.pumpBatch50, .locking) { BatchFrames(.locking, $0) },
    candidate(.pumpBatch50, .rawC) { RawFrames($0, batch: eventsOfBatch) },
  ]
}

private class Frames: Trial {
  private final class Sum {
    var count: UInt64 = 0
    var weight: UInt64 = 0
  }
  let central: EventCentral
  let pump: EventPump
  private let sum = Sum()
  private let frames: Int
  private let hasDeadline: Bool

  init(_ core: EventCentral.Core, _ frames: Int, hasDeadline: Bool = false) {
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
      post(after: number)
      number &+= UInt64(eventsOfFrame)
      let report = pump.run(until: hasDeadline ? .now + .seconds(1) : nil)
      check(report.waiting == 0, "A frame left \(report.waiting) events.")
    }
    let end = evb_now()
    check(
      sum.count == number && sum.weight == number * (number + 1) / 2,
      "A pump has handled \(sum.count) of \(number) events.")
    return Double(end - start) / Double(number)
  }

  /// The events of a frame.
  func post(after last: UInt64) {
    for number in last + 1...last + UInt64(eventsOfFrame) {
      pump.queueEvent(Event24(number: number))
    }
  }

  func end() { pump.cancel() }
}

private final class CentralFrames: Frames {
  override func post(after last: UInt64) {
    for number in last + 1...last + UInt64(eventsOfFrame) {
      Event24(number: number).queue(on: central)
    }
  }
}

private final class BatchFrames: Frames {
  private var batch = Array(repeating: Event24(number: 0), count: eventsOfBatch)

  override func post(after last: UInt64) {
    // As a variable of its own: each access to a property is checked.
    var batch: [Event24] = []
    swap(&batch, &self.batch)
    defer { swap(&batch, &self.batch) }
    for first in stride(from: last + 1, through: last + UInt64(eventsOfFrame), by: eventsOfBatch) {
      for index in batch.indices { batch[index] = Event24(number: first + UInt64(index)) }
      batch.queue(on: central)
    }
  }
}

private final class RawFrames: Trial {
  private let pump = evb_pump_open()
  private let frames: Int
  private let batch: Int
  private let hasDeadline: Bool

  init(_ frames: Int, batch: Int = 1, hasDeadline: Bool = false) {
    (self.frames, self.batch, self.hasDeadline) = (frames, batch, hasDeadline)
  }

  func run() -> Double {
    let time = evb_pump_run(pump, UInt64(frames), UInt64(eventsOfFrame), UInt32(batch), hasDeadline)
    return Double(time) / Double(frames * eventsOfFrame)
  }

  func end() { evb_pump_close(pump) }
}
