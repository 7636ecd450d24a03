// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Chooses the thread of an ``EventPool`` that handles an event.
///
/// ```swift
/// struct UrgentFirstBalancer: EventPoolBalancing {
///   /// Thread 0 is kept for what is urgent.
///   func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
///     choice.priority >= .high ? 0 : choice.leastLoaded(from: 1)
///   }
/// }
/// ```
///
/// The contract:
/// - ``chooseThread(for:)`` returns a number from 0 to ``EventPoolChoice/count`` - 1, or the program ends.
/// - It runs **on the thread that dispatches**, on several at once, before the dispatch returns. It must
///   not wait, nor take a lock that another thread may hold for long: every event for the pool passes it.
/// - It is called once for each event, and once more for each latest-only callback that a thread has
///   beside others for the event's type. It chooses among the threads that have a callback for the type;
///   if there is only one, it is not called. If the chosen thread has ended meanwhile, the event goes to
///   the next one that has not; if it has ended with the pool, the event is refused.
public protocol EventPoolBalancing: Sendable {
  /// Returns the number of the thread that gets the event.
  ///
  /// **Threads**: any, several at once, so mutable state in a balancer is atomic or locked.
  func chooseThread(for choice: borrowing EventPoolChoice) -> Int
}

/// What the library's own balancers tell their pool beside which thread they choose.
protocol EventPoolBalancerNeeds: EventPoolBalancing {
  /// Whether the events wait in one mailbox for all threads, so that no thread is chosen at dispatch.
  var sharesOneMailbox: Bool { get }

  /// The counter of a balancer that only takes threads in turn. The core counts it up itself, since asking
  /// the balancer takes three calls for each event.
  var turn: UnsafeMutablePointer<Atomic<UInt32>>? { get }

  /// The balancer for one more latest-only callback of each thread for a type. Each event makes a choice
  /// for every such callback: if two shared one counter, each would only ever reach every other thread.
  func forFurtherRoute() -> any EventPoolBalancing

  /// The balancer for one pool of a deterministic central: its choices do not depend on what differs from process to
  /// process.
  func forDeterministicPool() -> any EventPoolBalancing
}

extension EventPoolBalancerNeeds {
  var sharesOneMailbox: Bool { false }
  var turn: UnsafeMutablePointer<Atomic<UInt32>>? { nil }
  func forFurtherRoute() -> any EventPoolBalancing { self }
  func forDeterministicPool() -> any EventPoolBalancing { self }
}

extension EventPoolBalancing {
  /// Nil for a user's own balancer.
  var needs: (any EventPoolBalancerNeeds)? { self as? any EventPoolBalancerNeeds }
}

/// An event and the threads that may get it, as a balancer sees them.
///
/// This is a view, which costs no allocation, is valid during the call of
/// ``EventPoolBalancing/chooseThread(for:)`` and cannot be copied. The figures are momentary: other
/// threads dispatch and handle events meanwhile.
public struct EventPoolChoice: ~Copyable {
  /// How many threads there are to choose from, at least 2. They are numbered from 0, in the order in which they got
  /// their callbacks for the type; ``index(of:)`` tells which thread of the pool it is.
  public let count: Int
  private let loads: UnsafeRawPointer
  private let stride: Int
  @usableFromInline let envelope: UnsafeMutableRawPointer
  @usableFromInline let key: UInt

  init(
    count: Int, loads: UnsafeRawPointer, stride: Int, envelope: UnsafeMutableRawPointer, key: UInt
  ) {
    self.count = count
    self.loads = loads
    self.stride = stride
    self.envelope = envelope
    self.key = key
  }

  @inline(__always)
  private func eventLoad(of number: Int) -> EventLoad {
    require(
      number >= 0 && number < count,
      """
      A balancer asks about the threads 0 to \(count - 1) that it is offered, and asked about \(number): \
      count anew for each choice, since a pool grows and shrinks.
      """)
    return EventLoad(
      memory: loads.load(fromByteOffset: number * stride, as: UnsafeMutableRawPointer.self))
  }

  /// How many events wait for a thread, including the one that it is handling.
  ///
  /// - Parameter number: The number of the thread, from 0 on.
  ///
  /// **Complexity**: O(1); two loads from cache lines that other threads write.
  public func load(of number: Int) -> Int { eventLoad(of: number).pending }

  /// The first of the threads with the lowest ``load(of:)``.
  ///
  /// - Parameter first: The first thread to look at; lower numbers are left out.
  /// - Returns: The number of the thread.
  ///
  /// **Complexity**: O(threads); the search ends at the first idle thread.
  public func leastLoaded(from first: Int = 0) -> Int {
    var best = first
    var least = load(of: first)
    for number in (first + 1)..<max(first + 1, count) where least > 0 {
      let load = load(of: number)
      if load < least {
        (best, least) = (number, load)
      }
    }
    return best
  }

  /// The index of a thread in its pool, which the closure that made the thread was given. It stays the
  /// same while other threads come and go.
  ///
  /// - Parameter number: The number of the thread, from 0 on.
  ///
  /// **Complexity**: O(1).
  public func index(of number: Int) -> Int { eventLoad(of: number).index }

  /// The priority of the event. **Complexity**: O(1).
  public var priority: EventPriority { lane.priority }

  /// Whether the event is queued or stacked. **Complexity**: O(1).
  public var method: EventDispatchMethod { lane.method }

  private var lane: Lane {
    Lane(index: envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self))
  }

  /// Lets a closure read the event, without a copy, if the event is of the given type.
  ///
  /// - Parameters:
  ///   - type: The exact type of event (D11).
  ///   - body: Reads the event, on the thread that dispatches.
  /// - Returns: What the closure returned; nil if the event is of another type.
  ///
  /// **Complexity**: O(1).
  @inlinable
  public func withEvent<E: Eventable, Result>(
    of type: E.Type, _ body: (borrowing E) throws -> Result
  ) rethrows -> Result? {
    guard key == eventKey(type) else { return nil }
    return try body(envelopePayload(envelope).assumingMemoryBound(to: E.self).pointee)
  }
}
