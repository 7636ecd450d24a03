// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// Measures the candidates, those of one shape and payload in a process of their own.
///
/// What a shape leaves behind (threads that sleep, pools that have grown, a heap in pieces) would
/// be part of the figures of the next one, and of each by another amount.
func measureApart(_ candidates: [Candidate], isQuick: Bool) throws -> [Row] {
  try groups(of: candidates).flatMap { group in
    let (shape, payload) = (group[0].shape.rawValue, group[0].payloadBytes)
    progress("\(shape), \(payload) bytes")
    var arguments = ["--rows", "--shape", shape, "--payload", "\(payload)"]
    if isQuick { arguments.append("--quick") }
    // A group is all that takes part in it, or the one subject that was asked for.
    if group.count == 1 { arguments += ["--subject", group[0].subject.rawValue] }
    return try JSONDecoder().decode([Row].self, from: output(of: arguments))
  }
}

/// The rows for the process that asked for them, on standard output.
func printRows(_ rows: [Row]) throws {
  try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(rows))
}

private func output(of arguments: [String]) throws -> Data {
  let process = Process()
  process.executableURL = Bundle.main.executableURL
  process.arguments = arguments
  let pipe = Pipe()
  process.standardOutput = pipe
  try process.run()
  let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  guard process.terminationReason == .exit, process.terminationStatus == 0 else {
    throw MeasurementError(arguments: arguments, status: process.terminationStatus)
  }
  return data
}

/// A shape ended before it had measured anything; what it found is on standard error.
struct MeasurementError: Error, CustomStringConvertible {
  let arguments: [String]
  let status: Int32

  var description: String {
    """
    A shape is measured in a process of its own, and this one ended with \(status): \
    eventcore-benchmarks \(arguments.joined(separator: " ")). Run it alone to see what it found.
    """
  }
}
