// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation
import Testing

@testable import EventCoreNATS

/// The compact form, without a server.
@Suite struct CBORTests {
  struct Everything: Codable, Equatable {
    enum Side: String, Codable { case left, right }
    enum Shape: Codable, Equatable {
      case point
      case circle(radius: Double)
    }
    struct Inner: Codable, Equatable {
      enum CodingKeys: Int, CodingKey { case number = 1, name, more = 1000 }
      var number: Int
      var name: String
      var more: [Inner]?
    }
    var flag = true
    var integers: [Int64] = [
      0, 23, 24, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, .max, -1, -24, -25, .min,
    ]
    var unsigned: [UInt64] = [.max, 1 << 63]
    var doubles: [Double] = [
      0, -0.0, 0.5, 1, 1.5, 65_504, 65_505, 65_536, 0.1, 1e300, .leastNonzeroMagnitude, 0x1p-24, 0x1p-25, 0x1.8p-24,
      0x1.ffcp-15, -2,
      .infinity, -.infinity, 0x1p-14, 0x1.004p0, 0x1.002p0,
    ]
    var floats: [Float] = [0.1, 3.4e38, .leastNonzeroMagnitude, 0x1.8p-16]
    var text = "Grüße, \u{1F30D}\0"
    var data = Data([0, 1, 0xFF])
    var date = Date(timeIntervalSinceReferenceDate: 0.1)
    var side = Side.right
    var shapes = [Shape.point, .circle(radius: 2)]
    var inner = Inner(number: 1, name: "a", more: [Inner(number: -2, name: "", more: [])])
    var nothing: Int?
    var holes: [Int?] = [1, nil, 3]
    var names = ["007": 1, "7": 2, "-0": 3, "+1": 4, "": 5, "x": 6, "99999999999999999999": 7]
    var numbers = [-1: "a", 0: "b", 70_000: "c"]
    var url = URL(string: "nats://localhost:4222/a?b=c")!
    var empty: [String: Int] = [:]

    enum CodingKeys: String, CodingKey {
      case flag, integers, unsigned, doubles, floats, text, data, date, side, shapes, inner, nothing, holes, names
      case numbers, url, empty
    }
    static func == (lhs: Self, rhs: Self) -> Bool {
      lhs.flag == rhs.flag && lhs.integers == rhs.integers && lhs.unsigned == rhs.unsigned
        && lhs.doubles.map(\.bitPattern) == rhs.doubles.map(\.bitPattern) && lhs.floats == rhs.floats
        && lhs.text == rhs.text && lhs.data == rhs.data && lhs.date == rhs.date && lhs.side == rhs.side
        && lhs.shapes == rhs.shapes && lhs.inner == rhs.inner && lhs.nothing == rhs.nothing && lhs.holes == rhs.holes
        && lhs.names == rhs.names && lhs.numbers == rhs.numbers && lhs.url == rhs.url && lhs.empty == rhs.empty
    }
  }

  private func bytes(_ hex: String) -> Data {
    let digits = Array(hex.utf8).filter { $0 != 32 }
    return Data(
      stride(from: 0, to: digits.count, by: 2).map {
        UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)!
      })
  }

  private func hex(_ value: some Encodable) throws -> String {
    try CBOREncoder().encode(value).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  private func decode<T: Decodable>(_ hex: String, as type: T.Type) throws -> T {
    try CBORDecoder().decode(T.self, from: bytes(hex))
  }

  @Test("whatever is Codable comes back as it was, and equal values have equal bytes")
  func roundTrip() throws {
    let value = Everything()
    let data = try CBOREncoder().encode(value)
    #expect(try CBORDecoder().decode(Everything.self, from: data) == value)
    // Dictionaries come in another order each time they are made.
    for _ in 0..<20 { #expect(try CBOREncoder().encode(Everything()) == data) }
  }

  @Test("the examples of RFC 8949, appendix A, both ways")
  func examples() throws {
    #expect(try hex([0, 10, 23, 24, 100, 1000, 1_000_000]) == "87000a1718181864" + "1903e81a000f4240")
    #expect(try hex([1_000_000_000_000, -1, -10, -100, -1000]) == "851b000000e8d4a51000" + "20293863" + "3903e7")
    #expect(try hex(UInt64.max) == "1bffffffffffffffff")
    #expect(
      try hex([0.0, 1.0, 1.1, 1.5, 65504.0, 100000.0]) == "86f90000f93c00fb3ff199999999999af93e00f97bfffa47c35000")
    #expect(try hex([3.4028234663852886e+38, 1.0e+300, 5.960464477539063e-8, 0.00006103515625, -4.0, -4.1])
      == "86fa7f7ffffffb7e37e43c8800759cf90001f90400f9c400fbc010666666666666")
    #expect(try hex([Double.infinity, -.infinity, .nan]) == "83f97c00f9fc00f97e00")
    #expect(try hex([true, false]) == "82f5f4")
    #expect(try hex([Int?.none]) == "81f6")
    #expect(try hex(Data([1, 2, 3, 4])) == "4401020304")
    #expect(try hex(["", "a", "IETF", "\"\\", "\u{fc}", "\u{6c34}", "\u{10151}"])
      == "876061616449455446" + "62225c62c3bc63e6b0b464f0908591")
    #expect(try hex([1: 2, 3: 4]) == "a201020304")
    #expect(try hex(["a": "A", "b": "B"]) == "a2616161416162" + "6142")
    #expect(try hex(["aa": 1, "b": 2]) == "a2616202626161" + "01")
    #expect(try decode("a26161016162820203", as: Named.self) == Named(a: 1, b: [2, 3]))
    #expect(try decode("fb7ff0000000000000", as: Double.self) == .infinity)
    #expect(try decode("fa7fc00000", as: Double.self).isNaN)
    #expect(try decode("c11a514b67b0", as: Int.self) == 1_363_896_240, "a tag")
    #expect(try decode("f7", as: Int?.self) == nil)
  }
  struct Named: Codable, Equatable {
    var a: Int
    var b: [Int]
  }

  @Test("a small event is a third of its JSON")
  func size() throws {
    struct Track: Codable {
      enum CodingKeys: Int, CodingKey { case number = 1, position }
      var number = 7
      var position = [0.5, 1.25]
    }
    #expect(try hex(Track()) == "a2010702" + "82f93800f93d00")
    #expect(try JSONEncoder().encode(Track()).count == 34)
  }

  @Test("other encoders: keys in another order, names for numbers, longer heads, whole numbers for floats and back")
  func otherEncoders() throws {
    #expect(try decode("a2 6162 8102 6161 01", as: Named.self) == Named(a: 1, b: [2]))
    #expect(try decode("b90002 1b0000000000000001 05 646e616d65 6178", as: Everything.Inner.self)
      == Everything.Inner(number: 5, name: "x"))
    #expect(try decode("03", as: Double.self) == 3)
    #expect(try decode("f94200", as: Int.self) == 3)
    #expect(try decode("fb3fb999999999999a", as: Float.self) == 0.1)
  }

  @Test("a field that is not known is passed over; one that is missing is nil or an error; numbers have to fit")
  func fields() throws {
    #expect(try decode("a3 617a a1 01 02 6161 01 6162 80", as: Named.self) == Named(a: 1, b: []))
    #expect(throws: DecodingError.self) { try decode("a1 6161 01", as: Named.self) }
    #expect(throws: DecodingError.self) { try decode("a2 6161 f6 6162 80", as: Named.self) }
    #expect(throws: DecodingError.self) { try decode("a2 6161 6131 6162 80", as: Named.self) }
    #expect(throws: DecodingError.self) { try decode("190100", as: UInt8.self) }
    #expect(throws: DecodingError.self) { try decode("3880", as: Int8.self) }
    #expect(throws: DecodingError.self) { try decode("20", as: UInt.self) }
    #expect(throws: DecodingError.self) { try decode("1bffffffffffffffff", as: Int.self) }
    #expect(throws: DecodingError.self) { try decode("3bffffffffffffffff", as: Int.self) }
    #expect(throws: DecodingError.self) { try decode("f93e00", as: Int.self) }
    #expect(throws: DecodingError.self) { try decode("fb7e37e43c8800759c", as: Float.self) }
    #expect(throws: DecodingError.self) { try decode("f97e00", as: Int.self) }
  }

  class Base: Codable {
    var base = 1
    init() {}
  }
  final class Derived: Base {
    var own = 2
    enum CodingKeys: CodingKey { case own, nested, list }
    override init() { super.init() }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      own = try container.decode(Int.self, forKey: .own)
      let nested = try container.nestedContainer(keyedBy: CodingKeys.self, forKey: .nested)
      guard try nested.decode(String.self, forKey: .own) == "inside", nested.allKeys == [.own] else {
        throw CocoaError(.coderReadCorrupt)
      }
      var list = try container.nestedUnkeyedContainer(forKey: .list)
      guard list.count == 3, try list.decode(Int.self) == 1, try list.decodeNil(), list.currentIndex == 2,
        try list.nestedUnkeyedContainer().isAtEnd, list.isAtEnd
      else { throw CocoaError(.coderReadCorrupt) }
      #expect(throws: DecodingError.self) { try list.decode(Int.self) }
      try super.init(from: container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try super.encode(to: container.superEncoder())
      var nested = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .nested)
      var list = container.nestedUnkeyedContainer(forKey: .list)
      // In turn.
      try list.encode(1)
      try nested.encode("inside", forKey: .own)
      try list.encodeNil()
      _ = list.nestedUnkeyedContainer()
      // The last one counts.
      try container.encode(3, forKey: .own)
      try container.encode(own, forKey: .own)
    }
  }

  @Test("containers that a value makes by hand, and classes above classes")
  func byHand() throws {
    let value = Derived()
    (value.base, value.own) = (7, 8)
    let copy = try CBORDecoder().decode(Derived.self, from: CBOREncoder().encode(value))
    #expect(copy.base == 7)
    #expect(copy.own == 8)
  }

  struct Tree: Codable, Equatable {
    var children: [Tree] = []
    static func deep(_ levels: Int) -> Tree { (1..<levels).reduce(Tree()) { tree, _ in Tree(children: [tree]) } }
  }

  @Test("128 containers in one another can be sent and taken, and one more is an error on both sides")
  func depth() throws {
    let deepest = Tree.deep(64)
    let data = try CBOREncoder().encode(deepest)
    #expect(try CBORDecoder().decode(Tree.self, from: data) == deepest)
    #expect(throws: EncodingError.self) { try CBOREncoder().encode(Tree.deep(65)) }
    func nested(_ levels: Int) -> Data { Data(repeating: 0x81, count: levels) + [0] }
    _ = try CBORDocument(nested(128))
    #expect(throws: DecodingError.self) { try CBORDocument(nested(129)) }
    #expect(throws: DecodingError.self) { try CBORDocument(nested(10_000_000)) }
    // Tags in one another are no containers, and take no stack.
    #expect(try CBORDecoder().decode(Int.self, from: Data(repeating: 0xC1, count: 1_000_000) + [7]) == 7)
  }

  @Test("bytes that claim more than they have, or what the form does not have, are an error at once")
  func claims() throws {
    let bad = [
      "", "18", "19ff", "1a00", "1bffffffffffffff", "1c", "1f", "5f", "7f", "9f", "bf", "9bffffffffffffffff",
      "bbffffffffffffffff", "bb8000000000000000", "bb7fffffffffffffff", "9b7fffffffffffffff", "5bffffffffffffffff",
      "7b7fffffffffffffff", "4201", "6261",
      "8101ff", "0000", "a101", "a2010203", "c1", "e0", "f3", "f8ff", "f818", "fc", "ff", "f9", "f900", "fa000000",
    ]
    for hex in bad {
      #expect(throws: DecodingError.self, "\(hex)") { try CBORDocument(bytes(hex)) }
      #expect(throws: DecodingError.self, "\(hex)") { try decode(hex, as: Everything.self) }
    }
    #expect(throws: DecodingError.self, "no UTF-8") { try decode("62c328", as: String.self) }
    #expect(throws: DecodingError.self, "a key that is no UTF-8") { try decode("a162c32801", as: [String: Int].self) }
    #expect(throws: DecodingError.self, "a key that comes twice") {
      try decode("a2616101616102", as: [String: Int].self)
    }
  }

  @Test("random bytes and changed ones are a value or an error, and never more")
  func fuzz() throws {
    var random = SeededBytes("CBORTests.fuzz")
    let right = try CBOREncoder().encode(Everything())
    var taken = 0
    for round in 0..<4000 * stressFactor {
      let data = round % 2 == 0 ? random.bytes(200) : random.mutated(right)
      if let value = try? CBORDecoder().decode(Everything.self, from: data) {
        taken += 1
        // What was taken can be sent on.
        #expect(try CBORDecoder().decode(Everything.self, from: CBOREncoder().encode(value)).text == value.text)
      }
      _ = try? CBORDecoder().decode(Tree.self, from: data)
      _ = try? CBORDecoder().decode([String: [Int: Data]].self, from: data)
      _ = try? CBORDecoder().decode([Double?].self, from: data)
    }
    #expect(taken > 0, "No change left anything that can be taken.")
  }
}
