// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Numbers as bytes, the least significant first. A varint has seven bits a byte, and the high bit says that another
// byte follows.

extension [UInt8] {
  mutating func appendVarint(_ value: UInt64) {
    var rest = value
    while rest >= 128 {
      append(UInt8(truncatingIfNeeded: rest) | 128)
      rest >>= 7
    }
    append(UInt8(rest))
  }

  mutating func appendFixed(_ value: UInt32) {
    for shift in stride(from: 0, to: 32, by: 8) { append(UInt8(truncatingIfNeeded: value >> UInt32(shift))) }
  }
}

/// Reads bytes up to an end. Every member returns nil if what it reads is not there, or is none.
struct ByteReader {
  /// What is left.
  var rest: ArraySlice<UInt8>

  mutating func byte() -> UInt8? { rest.popFirst() }

  mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      guard let byte = byte() else { return nil }
      let bits = UInt64(byte & 127)
      guard shift < 63 || bits < 2 else { return nil }
      value |= bits << UInt64(shift)
      if byte < 128 { return value }
    }
    return nil
  }

  mutating func fixed() -> UInt32? {
    skip(4).map { $0.reversed().reduce(0) { $0 << 8 | UInt32($1) } }
  }

  /// Moves on, and returns what lies between.
  mutating func skip(_ count: UInt64) -> ArraySlice<UInt8>? {
    guard count <= UInt64(rest.count) else { return nil }
    defer { rest = rest.dropFirst(Int(count)) }
    return rest.prefix(Int(count))
  }
}

/// The CRC-32C (Castagnoli) of bytes, as in RFC 3720. It finds each change of up to 32 bits in a row.
struct Checksum {
  private var register = UInt32.max
  var value: UInt32 { ~register }
  /// In eight digits.
  var hexadecimal: String { String(String(1 << 32 | UInt64(value), radix: 16).dropFirst()) }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 0 ? value >> 1 : value >> 1 ^ 0x82F6_3B78 }
  }

  mutating func add(_ bytes: [UInt8], in range: Range<Int>) {
    let table = Self.table
    for index in range { register = register >> 8 ^ table[Int(UInt8(truncatingIfNeeded: register) ^ bytes[index])] }
  }
}
