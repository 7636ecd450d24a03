// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Says how many threads an ``EventPool`` ought to have.
///
/// The contract, as a test would ask for it:
/// - The pool asks ``capacity(for:)`` every ``interval`` while it has something to do, or more
///   threads than ``restingCapacity``; otherwise not. It never asks a scaler whose interval is nil;
///   then ``EventPool/rescale()`` does.
/// - What it answers becomes ``EventPool/capacity``; it is at least 1, and with an
///   ``EventPoolSharedBalancer`` at most 128, or the program ends.
/// - It is asked on a thread of the system's (Dispatch), never by who dispatches and never by a
///   thread of the pool, so that a handler that does not end does not hold it up. The threads that
///   it makes necessary are made there too.
/// - With ``EventPool/rescale()`` it may be asked on several threads at once.
public protocol EventPoolScaling: Sendable {
  /// How often the pool asks while it is busy; nil for never. Read once, when the pool is made.
  var interval: Duration? { get }

  /// The number of threads with which an idle pool may rest without being asked any more.
  var restingCapacity: Int { get }

  /// The most threads that it ever asks for; nil if it does not say, as by default. What the pool
  /// cannot have is refused when the pool is made, and not when there is much to do.
  var maximumCapacity: Int? { get }

  /// Returns the number of threads that the pool ought to have.
  ///
  /// - Parameter reading: How the pool is doing now.
  /// - Returns: How many; at least 1.
  ///
  /// **Threads**: one of the system's, and whoever calls ``EventPool/rescale()``: several at once.
  func capacity(for reading: EventPoolReading) -> Int
}

extension EventPoolScaling {
  /// It does not say.
  public var maximumCapacity: Int? { nil }
}

/// How a pool is doing at one moment, for its scaler.
public struct EventPoolReading: Sendable, Equatable {
  /// How many threads were asked for last, by the pool's maker, its owner or its scaler.
  public var capacity: Int
  /// How many threads take events now.
  public var threads: Int
  /// How many of them are inside a handler.
  public var busyThreads: Int
  /// How many events wait, those that are being handled not counted.
  public var waiting: Int
  /// How many events the pool's threads have handled so far, those that have ended included.
  public var handled: UInt64

  /// Makes a reading, to try a scaler with.
  public init(capacity: Int, threads: Int, busyThreads: Int, waiting: Int, handled: UInt64) {
    self.capacity = capacity
    self.threads = threads
    self.busyThreads = busyThreads
    self.waiting = waiting
    self.handled = handled
  }
}

/// Leaves a pool as it was made, or as ``EventPool/capacity`` was set: what a pool does without a scaler.
@usableFromInline
package struct FixedScaler: EventPoolScaling {
  @usableFromInline
  package init() {}

  /// The pool never asks.
  @usableFromInline package var interval: Duration? { nil }
  /// Unused, since the pool never asks.
  @usableFromInline package var restingCapacity: Int { 1 }
  @usableFromInline package func capacity(for reading: EventPoolReading) -> Int { reading.capacity }
}
