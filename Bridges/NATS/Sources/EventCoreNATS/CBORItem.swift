// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A value of CBOR (RFC 8949) that is about to be written.
///
/// The form is the deterministic one of section 4.2.1 there: the shortest heads and floats, definite lengths, the keys
/// of a map in the order of their bytes. So equal values have equal bytes. There are no tags.
enum CBORItem {
  case null
  case bool(Bool)
  case unsigned(UInt64)
  /// -1 - n.
  case negative(UInt64)
  case float(Double)
  case text(String)
  case bytes(Data)
  case array(CBORArray)
  case map(CBORMap)
  /// What an encoder has made that was handed out before.
  case later(CBORValueEncoder)

  /// How many containers may lie in one another. Each takes the stack of a few calls, and threads of the client have
  /// half a MiB on some systems.
  static let deepest = 128

  init<I: FixedWidthInteger>(_ value: I) {
    self = value < 0 ? .negative(UInt64(~value)) : .unsigned(UInt64(value))
  }

  /// - Throws: If it is deeper than ``deepest``.
  func write(to bytes: inout [UInt8], depth: Int = 0) throws {
    switch self {
    case .null: bytes.append(0xF6)
    case .bool(let value): bytes.append(value ? 0xF5 : 0xF4)
    case .unsigned(let value): Self.writeHead(0, value, to: &bytes)
    case .negative(let value): Self.writeHead(1, value, to: &bytes)
    case .float(let value): Self.write(value, to: &bytes)
    case .text(let value): Self.write(value, to: &bytes)
    case .bytes(let value):
      Self.writeHead(2, UInt64(value.count), to: &bytes)
      bytes.append(contentsOf: value)
    case .array(let array):
      try check(depth)
      Self.writeHead(4, UInt64(array.items.count), to: &bytes)
      for item in array.items { try item.write(to: &bytes, depth: depth + 1) }
    case .map(let map):
      try check(depth)
      let entries = map.sorted
      Self.writeHead(5, UInt64(entries.count), to: &bytes)
      for entry in entries {
        switch entry.key {
        case .number(let key): try CBORItem(key).write(to: &bytes)
        case .text(let key): Self.write(key, to: &bytes)
        }
        try entry.item.write(to: &bytes, depth: depth + 1)
      }
    case .later(let encoder): try encoder.result.write(to: &bytes, depth: depth)
    }
  }

  private func check(_ depth: Int) throws {
    guard depth < Self.deepest else {
      throw EncodingError.invalidValue(
        self,
        .init(
          codingPath: [],
          debugDescription: "CBOR here is \(Self.deepest) containers deep at most, and this is deeper."))
    }
  }

  private static func writeHead(_ major: UInt8, _ value: UInt64, to bytes: inout [UInt8]) {
    let kind = major << 5
    if value < 24 {
      bytes.append(kind | UInt8(value))
    } else if let value = UInt8(exactly: value) {
      bytes.append(kind | 24)
      bytes.append(value)
    } else if let value = UInt16(exactly: value) {
      write(kind | 25, value, to: &bytes)
    } else if let value = UInt32(exactly: value) {
      write(kind | 26, value, to: &bytes)
    } else {
      write(kind | 27, value, to: &bytes)
    }
  }

  private static func write<I: FixedWidthInteger>(_ head: UInt8, _ value: I, to bytes: inout [UInt8]) {
    bytes.append(head)
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  private static func write(_ text: String, to bytes: inout [UInt8]) {
    writeHead(3, UInt64(text.utf8.count), to: &bytes)
    bytes.append(contentsOf: text.utf8)
  }

  /// In the shortest form that has the same value.
  private static func write(_ value: Double, to bytes: inout [UInt8]) {
    guard !value.isNaN else { return write(0xF9, UInt16(0x7E00), to: &bytes) }
    let single = Float(value)
    if Double(single) != value {
      write(0xFB, value.bitPattern, to: &bytes)
    } else if let half = HalfFloat.bits(of: single) {
      write(0xF9, half, to: &bytes)
    } else {
      write(0xFA, single.bitPattern, to: &bytes)
    }
  }
}

/// Elements, in order.
final class CBORArray {
  var items: [CBORItem] = []
}

/// Entries, in the order in which they came.
final class CBORMap {
  var entries: [(key: CBORKey, item: CBORItem)] = []

  /// In the order of CBOR; of equal keys the last.
  fileprivate var sorted: [(key: CBORKey, item: CBORItem)] {
    let isSorted = zip(entries, entries.dropFirst()).allSatisfy { $0.key < $1.key }
    guard !isSorted else { return entries }
    let order = entries.indices.sorted { one, other in
      let (first, second) = (entries[one].key, entries[other].key)
      return first < second || (first == second && one < other)
    }
    var sorted: [(key: CBORKey, item: CBORItem)] = []
    for index in order {
      if sorted.last?.key == entries[index].key { sorted.removeLast() }
      sorted.append(entries[index])
    }
    return sorted
  }
}

/// The key of an entry: the number of a coding key, if it has one, since that is shorter, or else its name.
enum CBORKey: Hashable, Comparable {
  case number(Int)
  case text(String)

  init(_ key: some CodingKey) {
    guard let number = key.intValue else {
      self = .text(key.stringValue)
      return
    }
    // A dictionary's "007" has the number 7 as well, and must not become "7".
    let name = key.stringValue
    self = Int(name) == number && String(number) != name ? .text(name) : .number(number)
  }

  /// By their bytes.
  static func < (lhs: CBORKey, rhs: CBORKey) -> Bool {
    switch (lhs, rhs) {
    case (.number(let one), .number(let other)):
      (one < 0) == (other < 0) ? (one < 0 ? one > other : one < other) : other < 0
    case (.number, .text): true
    case (.text, .number): false
    case (.text(let one), .text(let other)):
      // The length comes first.
      one.utf8.count == other.utf8.count
        ? one.utf8.lexicographicallyPrecedes(other.utf8) : one.utf8.count < other.utf8.count
    }
  }
}

/// Floats of 16 bits, by their bits: `Float16` is not on all systems.
enum HalfFloat {
  /// Nil if the value needs more bits.
  static func bits(of value: Float) -> UInt16? {
    let bits = value.bitPattern
    let sign = UInt16(bits >> 16 & 0x8000)
    let (exponent, fraction) = (Int(bits >> 23 & 0xFF) - 127, bits & 0x7F_FFFF)
    if value == 0 { return sign }
    if exponent == 128 { return fraction == 0 ? sign | 0x7C00 : nil }
    if exponent >= -14 {
      guard exponent <= 15, fraction & 0x1FFF == 0 else { return nil }
      return sign | UInt16(exponent + 15) << 10 | UInt16(fraction >> 13)
    }
    // Below the smallest normal one: a multiple of 2 to the -24th.
    guard exponent >= -24 else { return nil }
    let (whole, shift) = (fraction | 0x80_0000, UInt32(-exponent - 1))
    guard whole & (1 << shift - 1) == 0 else { return nil }
    return sign | UInt16(whole >> shift)
  }

  static func value(of bits: UInt16) -> Double {
    let (exponent, fraction) = (Int(bits >> 10 & 0x1F), Double(bits & 0x3FF))
    let size: Double =
      switch exponent {
      case 0: fraction * 0x1p-24
      case 31: fraction == 0 ? .infinity : .nan
      default: Double(sign: .plus, exponent: exponent - 15, significand: 1 + fraction / 1024)
      }
    return bits & 0x8000 == 0 ? size : -size
  }
}
