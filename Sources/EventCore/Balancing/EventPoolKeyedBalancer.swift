// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Gives all events with one key to one thread of the pool, so that they are handled in their order
/// (D2), one at a time.
///
/// ```swift
/// EventPool<OrderProcessor>(
///   capacity: 5,
///   balancer: EventPoolKeyedBalancer { (order: OrderEvent) in order.customer }
///     .keyed { (payment: PaymentEvent) in payment.customer })
/// ```
///
/// Equal keys mean one thread also across types, if the keys are of one type. Events of a type
/// without a key go where another balancer sends them.
///
/// **Order** while the pool changes: a key stays with its thread as long as that thread is there
/// and no thread is added that takes the key over; of n threads, adding or removing one moves about
/// one key in n, and no other (rendezvous hashing: Thaler, Ravishankar 1998). A key that moves may
/// be handled by both threads at once, until the old one has handled what waited there. Each of the
/// two keeps its part in order.
///
/// Keys are spread by their hash: a few keys, or one with most of the events, do not spread evenly.
public struct EventPoolKeyedBalancer: EventPoolBalancing {
  @usableFromInline
  typealias Hash = @Sendable (borrowing EventPoolChoice) -> Int?

  private var hashes: [Hash]
  private let otherwise: any EventPoolBalancing

  @usableFromInline
  init(_ hash: @escaping Hash, otherwise: any EventPoolBalancing) {
    hashes = [hash]
    self.otherwise = otherwise
  }

  @usableFromInline
  func with(_ hash: @escaping Hash) -> EventPoolKeyedBalancer {
    var copy = self
    copy.hashes.append(hash)
    return copy
  }

  /// Makes a balancer with a key for one type of event.
  ///
  /// - Parameters:
  ///   - otherwise: Chooses for events of types without a key.
  ///   - key: Returns the key of an event. It runs where the event is dispatched, as
  ///     ``EventPoolBalancing`` says.
  @inlinable
  public init<E: Eventable, Key: Hashable>(
    otherwise: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    _ key: @escaping @Sendable (borrowing E) -> Key
  ) {
    self.init(
      { choice in choice.withEvent(of: E.self) { event in key(event).hashValue } },
      otherwise: otherwise)
  }

  /// The same balancer with a key for one more type of event.
  ///
  /// - Parameter key: Returns the key of an event. It runs where the event is dispatched.
  /// - Returns: A new balancer; this one stays as it is.
  @inlinable
  public func keyed<E: Eventable, Key: Hashable>(
    _ key: @escaping @Sendable (borrowing E) -> Key
  ) -> EventPoolKeyedBalancer {
    with { choice in choice.withEvent(of: E.self) { event in key(event).hashValue } }
  }

  /// Makes a balancer with a property as the key of one type of event. The closure form is faster:
  /// a key path is followed at run time.
  ///
  /// - Parameters:
  ///   - property: What the key of an event is.
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

  /// The same thread for events of one key, as long as that thread is there.
  ///
  /// **Threads**: any, several at once.
  ///
  /// **Complexity**: O(threads).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
    for hash in hashes {
      guard let value = hash(choice) else { continue }
      var best = 0
      var highest: UInt64 = 0
      for number in 0..<choice.count {
        // SplitMix64's finisher (Steele, Lea, Flood 2014) on key and thread: each thread draws a
        // number for the key, and the highest wins, whoever else is there.
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

extension EventPoolBalancing where Self == EventPoolKeyedBalancer {
  /// Gives events of one key to the same thread: `.byKey { (order: Order) in order.customer }`.
  ///
  /// - Parameter key: Returns the key of an event. It runs where the event is dispatched.
  @inlinable
  public static func byKey<E: Eventable, Key: Hashable>(
    _ key: @escaping @Sendable (borrowing E) -> Key
  ) -> EventPoolKeyedBalancer {
    EventPoolKeyedBalancer(key)
  }
}
