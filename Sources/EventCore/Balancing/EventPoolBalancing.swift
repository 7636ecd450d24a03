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
/// The contract, as a test would ask for it:
/// - ``chooseThread(for:)`` returns a number from 0 to ``EventPoolChoice/count`` - 1, or the
///   program ends.
/// - It runs **on the thread that dispatches**, on several at once, before the dispatch returns:
///   here a dispatch runs a user's code. It does not wait, and takes no lock that another
///   thread may hold for long; everything that is dispatched to the pool goes through it.
/// - It is asked once for each event, and once more for each latest-only callback that a thread has
///   beside others for its type. What it is offered are the threads that have a callback for
///   the event's type; with one such thread it is not asked. If the thread it chose has ended
///   meanwhile, the next one that has not gets the event.
/// - It allocates nothing by itself: what it is asked about is a view.
public protocol EventPoolBalancing: Sendable {
  /// Returns the number of the thread that gets the event.
  ///
  /// **Threads**: any, several at once: what changes in a balancer is atomic or guarded.
  func chooseThread(for choice: borrowing EventPoolChoice) -> Int
}

/// What a balancer of the library's needs of the pool beside being asked.
protocol EventPoolBalancerNeeds: EventPoolBalancing {
  /// Whether the events wait in one mailbox for all threads, so that nobody is asked.
  var sharesOneMailbox: Bool { get }

  /// Where turns are counted, if to take them in turn is all it does: the core counts there by itself,
  /// since to ask takes three calls for each event.
  var turn: UnsafeMutablePointer<Atomic<UInt32>>? { get }

  /// The balancer for one more latest-only callback of each thread for a type: each event asks for all
  /// of them, so that with one count of turns two of them would take every other thread.
  func forFurtherRoute() -> any EventPoolBalancing
}

extension EventPoolBalancerNeeds {
  var sharesOneMailbox: Bool { false }
  var turn: UnsafeMutablePointer<Atomic<UInt32>>? { nil }
  func forFurtherRoute() -> any EventPoolBalancing { self }
}

extension EventPoolBalancing {
  /// Nil for those that need nothing.
  var needs: (any EventPoolBalancerNeeds)? { self as? any EventPoolBalancerNeeds }
}

/// One event that is to be handled by one of several threads, as a balancer sees it.
///
/// A view of what the core has, valid during the call of ``EventPoolBalancing/chooseThread(for:)``;
/// it cannot be copied. The figures are momentary: other threads dispatch and handle meanwhile.
public struct EventPoolChoice: ~Copyable {
  /// How many threads there are to choose from; at least 2. They are numbered from 0, in the order
  /// in which they came to the pool.
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
      A balancer asks about the threads 0 to \(count - 1) that it is offered, and asked about \(number): count \
      anew for each choice, since a pool grows and shrinks.
      """)
    return EventLoad(
      memory: loads.load(fromByteOffset: number * stride, as: UnsafeMutableRawPointer.self))
  }

  /// How many events wait for a thread, with the one that it handles now.
  ///
  /// - Parameter number: Which of the threads on offer, from 0 on.
  ///
  /// **Complexity**: O(1); two loads from lines that other threads write.
  public func load(of number: Int) -> Int { eventLoad(of: number).pending }

  /// The number of the thread with the lowest ``load(of:)``; of several the first.
  ///
  /// - Parameter first: Where to begin; those before it are left out.
  ///
  /// - Returns: A number between `first` and the last thread on offer.
  ///
  /// **Complexity**: O(threads), but ends at the first that is idle.
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

  /// The index of a thread in its pool, as the closure that made it was given it: it stays when
  /// other threads come and go.
  ///
  /// - Parameter number: Which of the threads on offer, from 0 on.
  ///
  /// **Complexity**: O(1).
  public func index(of number: Int) -> Int { eventLoad(of: number).index }

  /// The priority of the event.
  ///
  /// **Complexity**: O(1), as the method.
  public var priority: EventPriority { lane.priority }

  /// By which discipline the event is dispatched.
  public var method: EventDispatchMethod { lane.method }

  private var lane: Lane {
    Lane(index: envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self))
  }

  /// Shows the event to a closure, if it is of a type; it is not copied.
  ///
  /// - Parameters:
  ///   - type: The exact type (D11).
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
