// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Reads words and decimal numbers from bytes, without making a string: for the files of `/proc` and for
/// recordings. It borrows the bytes, which have to outlive it.
package struct ByteScanner {
  private let bytes: UnsafeRawBufferPointer
  package private(set) var position = 0

  package init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  package var isAtEnd: Bool { position >= bytes.count }
  /// Whether the line ends here. True also at the end of the bytes.
  package var isAtLineEnd: Bool { isAtEnd || bytes[position] == UInt8(ascii: "\n") }

  /// Goes to the beginning of the next line. False if this line has no end.
  @discardableResult
  package mutating func skipLine() -> Bool {
    while position < bytes.count {
      position += 1
      if bytes[position - 1] == UInt8(ascii: "\n") { return true }
    }
    return false
  }

  package mutating func skipSpaces() {
    while position < bytes.count, bytes[position] == UInt8(ascii: " ") {
      position += 1
    }
  }

  /// Takes `text` if it comes next.
  package mutating func take(_ text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    guard bytes.count - position >= length else { return false }
    for index in 0..<length where bytes[position + index] != text.utf8Start[index] {
      return false
    }
    position += length
    return true
  }

  /// Skips blanks, and takes one word: everything up to a blank, the end of the line, or `end`.
  package mutating func word(until end: UInt8 = UInt8(ascii: " ")) -> UnsafeRawBufferPointer {
    skipSpaces()
    let start = position
    while position < bytes.count {
      let byte = bytes[position]
      if byte == end || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") { break }
      position += 1
    }
    return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
  }

  package mutating func skipWords(_ count: Int) {
    for _ in 0..<count {
      _ = word()
    }
  }

  /// Skips blanks, and takes one decimal number. Nil if there is none, or if it needs more than 64 bits.
  package mutating func number() -> UInt64? {
    skipSpaces()
    let start = position
    var value: UInt64 = 0
    while position < bytes.count {
      let digit = bytes[position] &- UInt8(ascii: "0")
      guard digit <= 9 else { break }
      let (tenfold, overflows) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflowsToo) = tenfold.addingReportingOverflow(UInt64(digit))
      guard !overflows, !overflowsToo else { return nil }
      value = sum
      position += 1
    }
    return position > start ? value : nil
  }
}
