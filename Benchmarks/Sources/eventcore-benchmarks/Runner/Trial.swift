// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import AllocationCounter
import RawCore

/// One subject in one shape, ready to run.
protocol Trial: AnyObject {
  /// Runs once, checks what was received, and returns the figure in the shape's unit.
  func run() -> Double
  /// Ends its threads.
  func end()
}

/// A row of the table before it is measured. `make` is called when its shape's turn comes.
struct Candidate {
  let shape: Shape
  let subject: Subject
  let payloadBytes: Int
  let make: () -> any Trial

  /// Returns the same candidate as another subject of its shape.
  func named(_ subject: Subject) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: payloadBytes, make: make)
  }
}

/// The part of a run that is measured.
struct Window {
  private let start: UInt64

  /// Opens the window; with `counting` the allocations of the process are counted too.
  init(counting: Bool) {
    if counting {
      evb_allocations_arm()
    }
    start = evb_now()
  }

  func nanoseconds(until end: UInt64) -> Double { Double(end - start) }
}
