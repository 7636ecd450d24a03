// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import AllocationCounter
import ArgumentParser

/// Measures EventCore and its peers, and prints one table.
@main
struct Benchmarks: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "eventcore-benchmarks",
    abstract: "Measures EventCore and its peers, and prints one table.")

  @Flag(help: "The 24-byte rows alone, with fewer runs and events: under two minutes.")
  var quick = false

  @Option(
    help: ArgumentHelp(
      "One shape alone: \(Shape.allCases.map(\.rawValue).joined(separator: ", ")).",
      valueName: "name"))
  var shape: Shape?

  @Option(
    help: ArgumentHelp(
      "One subject alone: \(Subject.allCases.map(\.rawValue).joined(separator: ", ")).",
      valueName: "name"))
  var subject: Subject?

  @Option(help: ArgumentHelp("Events of one size alone.", valueName: "bytes"))
  var payload: Int?

  @Option(help: ArgumentHelp("Where to write the figures as JSON.", valueName: "file"))
  var output: String?

  @Flag(help: .hidden)
  var rows = false

  func run() throws {
    let scale = Scale(isQuick: quick)
    var candidates = catalogue(scale).filter {
      // The alternatives inside the core are no rows of the table.
      shape == nil ? $0.shape != .choices : $0.shape == shape
    }
    if let subject {
      candidates.removeAll { $0.subject != subject }
    }
    if let payload {
      candidates.removeAll { $0.payloadBytes != payload }
    }
    let counted: Set<Shape> = [
      .allocations, .treeAllocations, .emitAllocations, .idleMailbox, .idleCentral,
    ]
    if candidates.contains(where: { counted.contains($0.shape) }), !evb_allocations_work() {
      progress("allocations cannot be counted on this system: left out")
      candidates.removeAll { counted.contains($0.shape) }
    }
    guard !candidates.isEmpty else {
      throw ValidationError(
        """
        A subject and a payload can be measured in the shapes that have them, and this shape has no row with \
        both: leave one of them out, or see the table of shapes in Benchmarks/README.md.
        """)
    }
    if self.rows {
      try printRows(measure(candidates, runs: scale.runs))
      return
    }
    let machine = Machine(isQuick: quick)
    let rows = try measureApart(candidates, isQuick: quick)
    print(table(rows, machine))
    if let output {
      try writeResults(rows, machine, to: output)
    }
  }
}

extension Shape: ExpressibleByArgument {}

extension Subject: ExpressibleByArgument {}
