// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Gives all events with the same key to the same thread of the pool, which handles them in order (D2), one
/// at a time.
///
/// ```swift
/// EventPool<OrderProcessor>(
///   capacity: 5,
///   balancer: EventPoolKeyedBalancer { (order: OrderEvent) in order.customer }
///     .keyed { (payment: PaymentEvent) in payment.customer })
/// ```
///
/// Events of different types with equal keys go to the same thread too, if their keys have the same type.
/// Another balancer chooses for events of types without a key.
///
/// **Order** while the pool changes: adding or removing one of n threads moves about one key in n, and no
/// other (rendezvous hashing: Thaler, Ravishankar 1998). Events of a key that moves may be handled by both
/// threads at once until the old thread has handled what waited there; each thread keeps its part in order.
/// The end of the pool moves no key: what comes too late for its thread is refused.
///
/// Keys are spread by their hash: with few keys, or most events on one key, the shares are uneven. Hash values differ from
/// process to process; in a deterministic central keys are spread by the order in which they come first, so that each
/// run chooses the same threads, and the pool remembers each key's hash.
public struct EventPoolKeyedBalancer: EventPoolBalancing {
  @usableFromInline
  typealias Hash = @Sendable (borrowing EventPoolChoice) -> Int?

  @usableFromInline var hashes: [Hash]
  private var otherwise: any EventPoolBalancing
  /// In a deterministic central, what keys are spread by in place of their hash values.
  private var ordinals: KeyOrdinals?

  @usableFromInline
  init(_ hash: @escaping Hash, otherwise: any EventPoolBalancing) {
    hashes = [hash]
    self.otherwise = otherwise
  }

  /// Makes a balancer with a key for one type of event.
  ///
  /// - Parameters:
  ///   - otherwise: Chooses for events of types without a key.
  ///   - key: Returns the key of an event. It runs on the thread that dispatches (``EventPoolBalancing``).
  @inlinable
  public init<E: Eventable, Key: Hashable>(
    otherwise: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    _ key: @escaping @Sendable (borrowing E) -> Key
  ) {
    self.init(
      { choice in choice.withEvent(of: E.self) { event in key(event).hashValue } },
      otherwise: otherwise)
  }

  /// Returns this balancer with a key for one more type of event.
  ///
  /// - Parameter key: Returns the key of an event. It runs on the thread that dispatches.
  /// - Returns: A new balancer; this one does not change.
  @inlinable
  public func keyed<E: Eventable, Key: Hashable>(
    _ key: @escaping @Sendable (borrowing E) -> Key
  ) -> EventPoolKeyedBalancer {
    var copy = self
    copy.hashes.append { choice in choice.withEvent(of: E.self) { event in key(event).hashValue } }
    return copy
  }

  /// Makes a balancer whose key for one type of event is a property. The form with a closure is faster,
  /// since a key path is followed at run time.
  ///
  /// - Parameters:
  ///   - property: The property that is the key.
  ///   - otherwise: Chooses for events of types without a key.
  @inlinable
  public init<E: Eventable, Key: Hashable>(
    by property: KeyPath<E, Key> & Sendable,
    otherwise: any EventPoolBalancing = EventPoolRoundRobinBalancer()
  ) {
    self.init(
      { choice in
        choice.withEvent(of: E.self) { event in (copy event)[keyPath: property].hashValue }
      }, otherwise: otherwise)
  }

  /// Returns the same thread for all events of one key, as long as that thread is in the pool. **Threads**:
  /// any, several at once. **Complexity**: O(threads).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
    for hash in hashes {
      guard let hash = hash(choice) else { continue }
      let value = ordinals?.ordinal(of: hash) ?? hash
      var best = 0
      var highest: UInt64 = 0
      for number in 0..<choice.count {
        // SplitMix64's finisher (Steele, Lea, Flood 2014) of key and thread gives each thread a number for
        // the key. The highest number wins, and does not depend on which other threads there are.
        let thread = UInt64(truncatingIfNeeded: choice.index(of: number) &+ 1)
        var drawn = UInt64(bitPattern: Int64(value)) ^ (thread &* 0x9E37_79B9_7F4A_7C15)
        drawn = (drawn ^ (drawn >> 30)) &* 0xBF58_476D_1CE4_E5B9
        drawn = (drawn ^ (drawn >> 27)) &* 0x94D0_49BB_1331_11EB
        drawn ^= drawn >> 31
        if drawn >= highest {
          (best, highest) = (number, drawn)
        }
      }
      return best
    }
    return otherwise.chooseThread(for: choice)
  }
}

extension EventPoolKeyedBalancer: EventPoolBalancerNeeds {
  func forFurtherRoute() -> any EventPoolBalancing {
    var copy = self
    copy.otherwise = otherwise.needs?.forFurtherRoute() ?? otherwise
    return copy
  }

  func forDeterministicPool() -> any EventPoolBalancing {
    var copy = self
    copy.otherwise = otherwise.needs?.forDeterministicPool() ?? otherwise
    copy.ordinals = KeyOrdinals()
    return copy
  }
}

/// Numbers hash values in the order in which they come first, for all event types of a pool.
private final class KeyOrdinals: Sendable {
  private let ordinals = Guarded<[Int: Int]>([:])

  /// **Complexity**: O(1); an entry for each hash value, as long as the pool.
  func ordinal(of hash: Int) -> Int {
    ordinals.withLock { ordinals in
      if let known = ordinals[hash] { return known }
      ordinals[hash] = ordinals.count
      return ordinals.count - 1
    }
  }
}

extension EventPoolBalancing where Self == EventPoolKeyedBalancer {
  /// Gives all events of one key to the same thread: `.byKey { (order: Order) in order.customer }`.
  ///
  /// - Parameter key: Returns the key of an event. It runs on the thread that dispatches.
  @inlinable
  public static func byKey<E: Eventable, Key: Hashable>(
    _ key: @escaping @Sendable (borrowing E) -> Key
  ) -> EventPoolKeyedBalancer {
    EventPoolKeyedBalancer(key)
  }
}
