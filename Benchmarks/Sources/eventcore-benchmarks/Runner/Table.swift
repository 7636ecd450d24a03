// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// The rows as a table, the machine on top and the bars below.
func table(_ rows: [Row], _ machine: Machine) -> String {
  var lines = machine.lines
  lines.append("")
  lines.append(
    "shape".padded(29) + "subject".padded(21) + "payload".padded(12) + "median".leading(11)
      + "min - max".leading(25) + "lockFree x".leading(12) + "  unit")
  var previous = ""
  for row in rows {
    let group = "\(row.shape) \(row.payloadBytes)"
    if group != previous, !previous.isEmpty {
      lines.append("")
    }
    previous = group
    lines.append(line(row, of: rows))
  }
  lines += [
    "",
    "* nothing crosses threads: notification-center and opencombine call their handlers on the",
    "  thread that sends; an actor runs on that of the task which awaits it, one event at a time.",
  ]
  if rows.contains(where: { $0.wasSlower(than: rows) }) {
    lines += [
      "~ the core was slower: eight additions took up to \((rows.map(\.additions).max() ?? 0).figure) ns before the runs of a row,",
      "  and \(rows.leastAdditions.figure) at best. Another program had a part of it, and the row's figures are too large.",
    ]
  }
  let bars = Bar.all.compactMap { $0.line(rows) }
  if !bars.isEmpty {
    lines += ["", "bar".padded(54) + "limit".padded(12) + "measured"]
    lines += bars
  }
  return lines.joined(separator: "\n")
}

private func line(_ row: Row, of rows: [Row]) -> String {
  let subject = Subject(rawValue: row.subject)
  let staysOnThread = subject.map { $0.isSynchronous || $0 == .actor } ?? false
  let reference = rows.first {
    $0.shape == row.shape && $0.payloadBytes == row.payloadBytes
      && $0.subject == Subject.lockFree.rawValue
  }
  let ratio = reference.flatMap { $0.median > 0 ? (row.median / $0.median).figure : nil } ?? "-"
  let isString = row.payloadBytes == MemoryLayout<StringEvent>.size
  return row.shape.padded(29) + "\(row.subject)\(staysOnThread ? " *" : "")".padded(21)
    + (isString ? "16 + String" : "\(row.payloadBytes)").padded(12) + row.median.figure.leading(11)
    + "\(row.min.figure) - \(row.max.figure)".leading(25) + ratio.leading(12) + "  \(row.unit)"
    + (row.wasSlower(than: rows) ? " ~" : "")
}

extension String {
  func padded(_ width: Int) -> String { self + spaces(to: width) }
  func leading(_ width: Int) -> String { spaces(to: width) + self }

  private func spaces(to width: Int) -> String {
    String(repeating: " ", count: max(1, width - count))
  }
}

extension Double {
  /// Three digits that count.
  var figure: String {
    if self == 0 { return "0" }
    if self >= 100 { return String(format: "%.0f", self) }
    if self >= 10 { return String(format: "%.1f", self) }
    if self >= 1 { return String(format: "%.2f", self) }
    return String(format: "%.3g", self)
  }
}
