// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How a core tells apart the keys of one type of events (``Conflatable``). It has no members.
public struct EventConflation: Sendable {
  let keys: ConflationKeys

  @usableFromInline
  init(_ keys: ConflationKeys) {
    self.keys = keys
  }

  @inlinable
  init<E: Conflatable>(_ type: E.Type) {
    typealias Key = E.ConflationKey
    let number: ConflationKeys.Number = { payload in
      let key = payload.assumingMemoryBound(to: E.self).pointee.conflationKey
      return integerKey(key) ?? UInt64(truncatingIfNeeded: key.hashValue)
    }
    self.init(
      ConflationKeys(
        number,
        isInteger(Key.self)
          ? nil
          : ConflationKeys.Comparison(
            isSame: { key, payload in
              key.assumingMemoryBound(to: Key.self).pointee
                == payload.assumingMemoryBound(to: E.self).pointee.conflationKey
            },
            keep: { payload in
              let key = UnsafeMutablePointer<Key>.allocate(capacity: 1)
              key.initialize(to: payload.assumingMemoryBound(to: E.self).pointee.conflationKey)
              return UnsafeMutableRawPointer(key)
            },
            letGo: { key in
              let key = key.assumingMemoryBound(to: Key.self)
              key.deinitialize(count: 1)
              key.deallocate()
            })))
  }
}

/// What a core calls for the keys of one type of events: closures over the addresses of payloads, made where the type
/// is known. Any thread, several at once.
@usableFromInline
final class ConflationKeys: Sendable {
  @usableFromInline typealias Number = @Sendable (_ payload: UnsafeRawPointer) -> UInt64

  /// Tells apart keys whose numbers may be equal.
  @usableFromInline
  struct Comparison: Sendable {
    let isSame: @Sendable (_ key: UnsafeRawPointer, _ payload: UnsafeRawPointer) -> Bool
    /// Makes what stands for a payload's key; `letGo` ends it.
    let keep: @Sendable (_ payload: UnsafeRawPointer) -> UnsafeMutableRawPointer
    let letGo: @Sendable (_ key: UnsafeMutableRawPointer) -> Void

    @usableFromInline
    init(
      isSame: @escaping @Sendable (UnsafeRawPointer, UnsafeRawPointer) -> Bool,
      keep: @escaping @Sendable (UnsafeRawPointer) -> UnsafeMutableRawPointer,
      letGo: @escaping @Sendable (UnsafeMutableRawPointer) -> Void
    ) {
      self.isSame = isSame
      self.keep = keep
      self.letGo = letGo
    }
  }

  /// The key itself if it is an integer, or else its hash.
  let number: Number
  /// Nil if keys are integers.
  let comparison: Comparison?

  @usableFromInline
  init(_ number: @escaping Number, _ comparison: Comparison?) {
    self.number = number
    self.comparison = comparison
  }
}

/// Whether `integerKey` returns a number for keys of this type.
@inlinable
func isInteger<Key>(_ type: Key.Type) -> Bool {
  type == Int.self || type == UInt.self || type == Int64.self || type == UInt64.self
    || type == Int32.self || type == UInt32.self || type == Int16.self || type == UInt16.self
    || type == Int8.self || type == UInt8.self
}

/// A key of a type of the standard library's integers, as a number. Nil for other types. Where the type is known, one
/// line of it is left.
@inlinable
@inline(__always)
func integerKey<Key>(_ key: Key) -> UInt64? {
  if Key.self == Int.self { return UInt64(bitPattern: Int64(unsafeBitCast(key, to: Int.self))) }
  if Key.self == UInt.self { return UInt64(unsafeBitCast(key, to: UInt.self)) }
  if Key.self == Int64.self { return UInt64(bitPattern: unsafeBitCast(key, to: Int64.self)) }
  if Key.self == UInt64.self { return unsafeBitCast(key, to: UInt64.self) }
  if Key.self == Int32.self { return UInt64(UInt32(bitPattern: unsafeBitCast(key, to: Int32.self))) }
  if Key.self == UInt32.self { return UInt64(unsafeBitCast(key, to: UInt32.self)) }
  if Key.self == Int16.self { return UInt64(UInt16(bitPattern: unsafeBitCast(key, to: Int16.self))) }
  if Key.self == UInt16.self { return UInt64(unsafeBitCast(key, to: UInt16.self)) }
  if Key.self == Int8.self { return UInt64(UInt8(bitPattern: unsafeBitCast(key, to: Int8.self))) }
  if Key.self == UInt8.self { return UInt64(unsafeBitCast(key, to: UInt8.self)) }
  return nil
}

/// Which of the events that wait for a handler are kept.
@usableFromInline
enum Conflation {
  case none
  case latestOnly
  case perKey(ConflationKeys)

  /// Whether the handler has a subscription to itself.
  var isConflated: Bool {
    if case .none = self { false } else { true }
  }

  var keys: ConflationKeys? {
    if case .perKey(let keys) = self { keys } else { nil }
  }
}
