// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// Decodes values from CBOR (``CBORDocument``).
struct CBORDecoder {
  func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T {
    try CBORPlace(document: CBORDocument(data), item: 0, codingPath: []).decode(T.self)
  }
}

/// A value in a document.
private struct CBORPlace: Decoder, SingleValueDecodingContainer {
  let document: CBORDocument
  let item: Int
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard let entries = try document.entries(item) else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(CBORKeyedDecoder(place: self, entries: entries))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard document.head(item).major == 4 else { throw mismatch([Any].self) }
    return CBORUnkeyedDecoder(place: self)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func decodeNil() -> Bool { document.isNull(item) }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    // As in CBORItem.
    if T.self == Int.self { return try integer(Int.self) as! T }
    if T.self == Double.self { return try found(document.float(item)) as! T }
    if T.self == String.self { return try found(document.text(item)) as! T }
    if T.self == Bool.self { return try found(document.bool(item)) as! T }
    if T.self == Float.self { return try single() as! T }
    if T.self == Data.self { return try found(document.data(item)) as! T }
    if T.self == Int8.self { return try integer(Int8.self) as! T }
    if T.self == Int16.self { return try integer(Int16.self) as! T }
    if T.self == Int32.self { return try integer(Int32.self) as! T }
    if T.self == Int64.self { return try integer(Int64.self) as! T }
    if T.self == UInt.self { return try integer(UInt.self) as! T }
    if T.self == UInt8.self { return try integer(UInt8.self) as! T }
    if T.self == UInt16.self { return try integer(UInt16.self) as! T }
    if T.self == UInt32.self { return try integer(UInt32.self) as! T }
    if T.self == UInt64.self { return try integer(UInt64.self) as! T }
    return try T(from: self)
  }

  private func integer<I: FixedWidthInteger>(_ type: I.Type) throws -> I { try found(document.integer(item)) }

  /// Rounded, unless it is beyond all floats of that size.
  private func single() throws -> Float {
    let value = try found(document.float(item))
    let single = Float(value)
    guard single.isFinite || !value.isFinite else { throw mismatch(Float.self) }
    return single
  }

  private func found<T>(_ value: T?) throws -> T {
    guard let value else { throw mismatch(T.self) }
    return value
  }

  private func mismatch(_ type: Any.Type) -> DecodingError {
    let text = "The CBOR at \"\(codingPath.text)\" is no \(type), or one that does not fit."
    let context = DecodingError.Context(codingPath: codingPath, debugDescription: text)
    return decodeNil() ? .valueNotFound(type, context) : .typeMismatch(type, context)
  }

  func place(_ item: Int, _ key: (any CodingKey)?) -> CBORPlace {
    CBORPlace(document: document, item: item, codingPath: key.map { codingPath + [$0] } ?? codingPath)
  }
}

private struct CBORKeyedDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let place: CBORPlace
  let entries: [CBORKey: Int]

  var codingPath: [any CodingKey] { place.codingPath }

  var allKeys: [Key] {
    entries.keys.compactMap { key in
      switch key {
      case .number(let number): Key(intValue: number)
      case .text(let text): Key(stringValue: text)
      }
    }
  }

  func contains(_ key: Key) -> Bool { item(key) != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try value(key).decodeNil() }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try value(key).decode(T.self) }

  func nestedContainer<Other: CodingKey>(
    keyedBy type: Other.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Other> {
    try value(key).container(keyedBy: Other.self)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try value(key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { try value(CBORSuperKey()) }
  func superDecoder(forKey key: Key) throws -> any Decoder { try value(key) }

  /// By its number, or else by its name: other programs may write names.
  private func item(_ key: some CodingKey) -> Int? {
    entries[CBORKey(key)] ?? (key.intValue == nil ? nil : entries[.text(key.stringValue)])
  }

  private func value(_ key: some CodingKey) throws -> CBORPlace {
    guard let item = item(key) else {
      throw DecodingError.keyNotFound(
        key, .init(codingPath: codingPath, debugDescription: "The CBOR has no \"\(key.stringValue)\"."))
    }
    return place.place(item, key)
  }
}

private struct CBORUnkeyedDecoder: UnkeyedDecodingContainer {
  private let place: CBORPlace
  private var item: Int
  private let end: Int
  let count: Int?
  private(set) var currentIndex = 0

  init(place: CBORPlace) {
    self.place = place
    // What is in a container comes right after it.
    (item, end) = (place.item + 1, place.document.next(place.item))
    count = Int(place.document.head(place.item).argument)
  }

  var codingPath: [any CodingKey] { place.codingPath }
  var isAtEnd: Bool { item == end }

  mutating func decodeNil() throws -> Bool {
    guard try present().decodeNil() else { return false }
    step()
    return true
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let value = try present().decode(T.self)
    step()
    return value
  }

  mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    let container = try present().container(keyedBy: Key.self)
    step()
    return container
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let container = try present().unkeyedContainer()
    step()
    return container
  }

  mutating func superDecoder() throws -> any Decoder {
    let decoder = try present()
    step()
    return decoder
  }

  private func present() throws -> CBORPlace {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        Any.self, .init(codingPath: codingPath, debugDescription: "The CBOR has \(currentIndex) elements here."))
    }
    return place.place(item, nil)
  }

  private mutating func step() {
    item = place.document.next(item)
    currentIndex += 1
  }
}
