// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// The bytes of a value of CBOR (RFC 8949), which may come from anybody, with the place of each item in them.
///
/// Taken are definite lengths alone, and no simple values but false, true, null and undefined. Tags are passed over. It
/// takes a time and a memory in proportion to the bytes, however deep they are and whatever lengths they claim: eight
/// bytes for each item, of which each has at least one, three times that while the array grows.
final class CBORDocument {
  /// An item, in the order of the bytes.
  private struct Entry {
    var offset: UInt32
    /// The number of the item after this one and all that is in it.
    var next: UInt32
  }

  /// What an item says of itself.
  struct Head {
    var major: UInt8
    /// The lower five bits.
    var more: UInt8
    var argument: UInt64
    /// Where what belongs to it begins.
    var end: Int
  }

  private let bytes: [UInt8]
  private var entries: [Entry] = []

  /// - Throws: Unless the bytes are one item, of no more than ``CBORItem/deepest`` containers in one another.
  init(_ data: Data) throws {
    bytes = [UInt8](data)
    guard bytes.count < Int(Int32.max) else { throw Self.corrupted("It has \(bytes.count) bytes.") }
    var open: [(entry: Int, left: UInt64)] = []
    var offset = 0
    repeat {
      var head = try readHead(offset)
      while head.major == 6 {
        offset = head.end
        head = try readHead(offset)
      }
      entries.append(Entry(offset: UInt32(offset), next: UInt32(entries.count + 1)))
      offset = head.end
      let rest = UInt64(bytes.count - offset)
      switch head.major {
      case 2, 3:
        guard head.argument <= rest else { throw Self.corrupted("A text or data is cut.") }
        offset += Int(head.argument)
      case 4, 5:
        // Each item has at least one byte.
        guard head.argument <= rest / (head.major == 5 ? 2 : 1) else { throw Self.corrupted("A container is cut.") }
        guard open.count < CBORItem.deepest else { throw Self.corrupted("It is too deep.") }
        if head.argument > 0 {
          open.append((entries.count - 1, head.major == 5 ? 2 * head.argument : head.argument))
          continue
        }
      case 7:
        guard (20...23).contains(head.more) || (25...27).contains(head.more) else {
          throw Self.corrupted("It has a simple value that means nothing here.")
        }
      default: break
      }
      // The item ends, and so may those around it.
      while let last = open.last {
        open[open.count - 1].left = last.left - 1
        guard last.left == 1 else { break }
        entries[last.entry].next = UInt32(entries.count)
        open.removeLast()
      }
    } while !open.isEmpty
    guard offset == bytes.count else { throw Self.corrupted("Bytes follow the value.") }
  }

  private func readHead(_ offset: Int) throws -> Head {
    guard offset < bytes.count else { throw Self.corrupted("It is cut.") }
    let (major, more) = (bytes[offset] >> 5, bytes[offset] & 31)
    guard more >= 24 else { return Head(major: major, more: more, argument: UInt64(more), end: offset + 1) }
    guard more <= 27 else { throw Self.corrupted("It has an indefinite length, or a head that means nothing.") }
    let length = 1 << Int(more - 24)
    guard length < bytes.count - offset else { throw Self.corrupted("It is cut.") }
    var argument: UInt64 = 0
    for byte in bytes[offset + 1...offset + length] { argument = argument << 8 | UInt64(byte) }
    return Head(major: major, more: more, argument: argument, end: offset + 1 + length)
  }

  private static func corrupted(_ text: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: "The bytes are no CBOR that can be taken. \(text)"))
  }

  // MARK: Items, by their number

  func next(_ item: Int) -> Int { Int(entries[item].next) }

  func head(_ item: Int) -> Head {
    // The initialiser has read it, and would have thrown.
    try! readHead(Int(entries[item].offset))
  }

  func isNull(_ item: Int) -> Bool {
    let byte = bytes[Int(entries[item].offset)]
    return byte == 0xF6 || byte == 0xF7
  }

  func bool(_ item: Int) -> Bool? {
    switch bytes[Int(entries[item].offset)] {
    case 0xF4: false
    case 0xF5: true
    default: nil
    }
  }

  /// Nil if it is none, or does not fit; a float without a fraction is one.
  func integer<I: FixedWidthInteger>(_ item: Int) -> I? {
    let head = head(item)
    switch head.major {
    case 0: return I(exactly: head.argument)
    case 1: return Int64(exactly: head.argument).flatMap { I(exactly: ~$0) }
    case 7: return float(head).flatMap { I(exactly: $0) }
    default: return nil
    }
  }

  /// Nil if it is no number.
  func float(_ item: Int) -> Double? {
    let head = head(item)
    switch head.major {
    case 0: return Double(head.argument)
    case 1: return -1 - Double(head.argument)
    case 7: return float(head)
    default: return nil
    }
  }

  private func float(_ head: Head) -> Double? {
    switch head.more {
    case 25: HalfFloat.value(of: UInt16(head.argument))
    case 26: Double(Float(bitPattern: UInt32(head.argument)))
    case 27: Double(bitPattern: head.argument)
    default: nil
    }
  }

  /// Nil if it is no text, or no UTF-8.
  func text(_ item: Int) -> String? {
    let head = head(item)
    guard head.major == 3 else { return nil }
    return String(validating: bytes[head.end..<head.end + Int(head.argument)], as: UTF8.self)
  }

  func data(_ item: Int) -> Data? {
    let head = head(item)
    guard head.major == 2 else { return nil }
    return Data(bytes[head.end..<head.end + Int(head.argument)])
  }

  /// Nil if it is no map. Keys that are neither text nor a number of 64 bits are passed over: no coding key is like
  /// them.
  func entries(_ item: Int) throws -> [CBORKey: Int]? {
    let head = head(item)
    guard head.major == 5 else { return nil }
    var result: [CBORKey: Int] = [:]
    var key = item + 1
    for _ in 0..<head.argument {
      let value = next(key)
      defer { key = next(value) }
      let name: CBORKey
      switch self.head(key).major {
      case 0, 1:
        guard let number: Int = integer(key) else { continue }
        name = .number(number)
      case 3:
        guard let text = text(key) else { throw Self.corrupted("A key is no UTF-8.") }
        name = .text(text)
      default: continue
      }
      guard result.updateValue(value, forKey: name) == nil else { throw Self.corrupted("A key comes twice.") }
    }
    return result
  }
}
