// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A whole number with separators: `1,234,567`.
func grouped<Number: BinaryInteger>(_ number: Number) -> String {
  let digits = Array(String(number.magnitude))
  var text = number < 0 ? "-" : ""
  for (index, digit) in digits.enumerated() {
    if index > 0, (digits.count - index) % 3 == 0 { text += "," }
    text.append(digit)
  }
  return text
}

/// A rate, rounded to a whole number of at most 64 bits.
func grouped(_ number: Double) -> String {
  grouped(UInt64(exactly: max(0, number.rounded())) ?? .max)
}

/// A number with a fixed number of digits after the point.
func fixed(_ number: Double, _ digits: Int) -> String {
  let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
  let scaled = (number.magnitude * scale).rounded()
  guard let units = UInt64(exactly: scaled) else { return "\(number)" }
  let whole = units / UInt64(scale)
  let sign = number < 0 && units > 0 ? "-" : ""
  guard digits > 0 else { return "\(sign)\(whole)" }
  let fraction = String(units % UInt64(scale))
  return "\(sign)\(whole)." + String(repeating: "0", count: digits - fraction.count) + fraction
}

/// A latency in a suitable unit; a dash if there is none.
func latency(_ nanoseconds: UInt64?) -> String {
  guard let nanoseconds else { return "-" }
  switch nanoseconds {
  case ..<1_000: return "\(nanoseconds) ns"
  case ..<1_000_000: return fixed(Double(nanoseconds) / 1e3, 1) + " µs"
  case ..<1_000_000_000: return fixed(Double(nanoseconds) / 1e6, 1) + " ms"
  default: return fixed(Double(nanoseconds) / 1e9, 2) + " s"
  }
}

/// A size in a suitable unit.
func bytes(_ count: Double) -> String {
  switch count {
  case ..<1024: fixed(count, 0) + " B"
  case ..<1_048_576: fixed(count / 1024, 1) + " KiB"
  case ..<1_073_741_824: fixed(count / 1_048_576, 1) + " MiB"
  default: fixed(count / 1_073_741_824, 1) + " GiB"
  }
}

/// Padded with blanks on the left, for columns of figures.
func right(_ text: String, _ width: Int) -> String {
  String(repeating: " ", count: max(0, width - text.count)) + text
}

/// Padded with blanks on the right, for columns of words.
func left(_ text: String, _ width: Int) -> String {
  text + String(repeating: " ", count: max(0, width - text.count))
}
