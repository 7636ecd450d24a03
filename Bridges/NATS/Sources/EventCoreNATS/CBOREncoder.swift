// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// Encodes values as CBOR (``CBORItem``).
struct CBOREncoder {
  func encode<T: Encodable>(_ value: T) throws -> Data {
    var bytes: [UInt8] = []
    try CBORItem(of: value, at: []).write(to: &bytes)
    return Data(bytes)
  }
}

extension CBORItem {
  /// - Parameter path: Where the value is, for errors.
  init<T: Encodable>(of value: T, at path: [any CodingKey]) throws {
    // The types are compared, since a search for a conformance takes longer than all else.
    if T.self == Int.self { self = .init(value as! Int) }
    else if T.self == Double.self { self = .float(value as! Double) }
    else if T.self == String.self { self = .text(value as! String) }
    else if T.self == Bool.self { self = .bool(value as! Bool) }
    else if T.self == Float.self { self = .float(Double(value as! Float)) }
    else if T.self == Data.self { self = .bytes(value as! Data) }
    else if T.self == Int8.self { self = .init(value as! Int8) }
    else if T.self == Int16.self { self = .init(value as! Int16) }
    else if T.self == Int32.self { self = .init(value as! Int32) }
    else if T.self == Int64.self { self = .init(value as! Int64) }
    else if T.self == UInt.self { self = .init(value as! UInt) }
    else if T.self == UInt8.self { self = .init(value as! UInt8) }
    else if T.self == UInt16.self { self = .init(value as! UInt16) }
    else if T.self == UInt32.self { self = .init(value as! UInt32) }
    else if T.self == UInt64.self { self = .init(value as! UInt64) }
    else {
      let encoder = CBORValueEncoder(path)
      try value.encode(to: encoder)
      self = encoder.result
    }
  }
}

/// Encodes one value.
final class CBORValueEncoder: Encoder, SingleValueEncodingContainer {
  let codingPath: [any CodingKey]
  let userInfo: [CodingUserInfoKey: Any] = [:]
  private var item: CBORItem?

  init(_ path: [any CodingKey]) {
    codingPath = path
  }

  /// A value that has encoded nothing is an empty map, as in JSON.
  var result: CBORItem { item ?? .map(CBORMap()) }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    if case .map(let map) = item { return KeyedEncodingContainer(CBORKeyedEncoder(map, codingPath)) }
    let map = CBORMap()
    put(.map(map))
    return KeyedEncodingContainer(CBORKeyedEncoder(map, codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if case .array(let array) = item { return CBORUnkeyedEncoder(array, codingPath) }
    let array = CBORArray()
    put(.array(array))
    return CBORUnkeyedEncoder(array, codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  func encodeNil() { put(.null) }
  func encode<T: Encodable>(_ value: T) throws { put(try CBORItem(of: value, at: codingPath)) }

  private func put(_ new: CBORItem) {
    guard item == nil else {
      fatalError(
        """
        A value encodes itself once, in one container, and one at "\(codingPath.text)" has done so before: mend its \
        encode(to:).
        """)
    }
    item = new
  }
}

// Of the functions that these protocols ask for, the generic one serves for all types.

private struct CBORKeyedEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
  private let map: CBORMap
  let codingPath: [any CodingKey]

  init(_ map: CBORMap, _ path: [any CodingKey]) {
    (self.map, codingPath) = (map, path)
  }

  func encodeNil(forKey key: Key) { put(.null, key) }
  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    put(try CBORItem(of: value, at: codingPath + [key]), key)
  }

  func nestedContainer<Other: CodingKey>(
    keyedBy type: Other.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Other> {
    let nested = CBORMap()
    put(.map(nested), key)
    return KeyedEncodingContainer(CBORKeyedEncoder<Other>(nested, codingPath + [key]))
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    let nested = CBORArray()
    put(.array(nested), key)
    return CBORUnkeyedEncoder(nested, codingPath + [key])
  }

  func superEncoder() -> any Encoder { encoder(for: CBORSuperKey()) }
  func superEncoder(forKey key: Key) -> any Encoder { encoder(for: key) }

  private func encoder(for key: some CodingKey) -> any Encoder {
    let encoder = CBORValueEncoder(codingPath + [key])
    put(.later(encoder), key)
    return encoder
  }

  private func put(_ item: CBORItem, _ key: some CodingKey) { map.entries.append((CBORKey(key), item)) }
}

private struct CBORUnkeyedEncoder: UnkeyedEncodingContainer {
  private let array: CBORArray
  let codingPath: [any CodingKey]
  var count: Int { array.items.count }

  init(_ array: CBORArray, _ path: [any CodingKey]) {
    (self.array, codingPath) = (array, path)
  }

  func encodeNil() { array.items.append(.null) }
  func encode<T: Encodable>(_ value: T) throws { array.items.append(try CBORItem(of: value, at: codingPath)) }

  func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    let nested = CBORMap()
    array.items.append(.map(nested))
    return KeyedEncodingContainer(CBORKeyedEncoder(nested, codingPath))
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    let nested = CBORArray()
    array.items.append(.array(nested))
    return CBORUnkeyedEncoder(nested, codingPath)
  }

  func superEncoder() -> any Encoder {
    let encoder = CBORValueEncoder(codingPath)
    array.items.append(.later(encoder))
    return encoder
  }
}

/// The key of what a class leaves to the one above it.
struct CBORSuperKey: CodingKey {
  let stringValue = "super"
  var intValue: Int? { nil }
  init() {}
  init?(stringValue: String) { nil }
  init?(intValue: Int) { nil }
}

extension [any CodingKey] {
  var text: String { map(\.stringValue).joined(separator: ".") }
}
