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

  @Flag(help: "The 24-byte rows alone, with fewer runs and events: about a minute.")
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

  @Option(help: ArgumentHelp("Where to write the figures as JSON.", valueName: "file"))
  var output: String?

  func run() throws {
    let scale = Scale(isQuick: quick)
    var candidates = catalogue(scale).filter {
      // The alternatives inside the core are no rows of the table.
      shape == nil ? $0.shape != .choices : $0.shape == shape
    }
    if let subject {
      candidates.removeAll { $0.subject != subject }
    }
    let counted: Set<Shape> = [.allocations, .treeAllocations]
    if candidates.contains(where: { counted.contains($0.shape) }), !evb_allocations_work() {
      progress("allocations cannot be counted on this system: left out")
      candidates.removeAll { counted.contains($0.shape) }
    }
    guard !candidates.isEmpty else {
      throw ValidationError("This subject does not take part in this shape.")
    }
    let machine = Machine(isQuick: quick)
    let rows = measure(candidates, runs: scale.runs)
    print(table(rows, machine))
    if let output {
      try writeResults(rows, machine, to: output)
    }
  }
}

extension Shape: ExpressibleByArgument {}

extension Subject: ExpressibleByArgument {}
