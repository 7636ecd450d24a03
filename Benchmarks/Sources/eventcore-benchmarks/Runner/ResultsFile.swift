// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// Writes what programs read: the machine, and one row per line so that a change shows as one.
func writeResults(_ rows: [Row], _ machine: Machine, to path: String) throws {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  func text(_ value: some Encodable) throws -> String {
    String(decoding: try encoder.encode(value), as: UTF8.self)
  }
  let lines = try rows.map { "    \(try text($0))" }
  let file = """
    {
      "machine": \(try text(machine)),
      "rows": [
    \(lines.joined(separator: ",\n"))
      ]
    }

    """
  try file.write(toFile: path, atomically: true, encoding: .utf8)
}
