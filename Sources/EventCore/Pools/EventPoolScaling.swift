// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Decides how many threads an ``EventPool`` has.
///
/// The contract:
/// - The pool calls ``capacity(for:)`` every ``interval`` while it has something to do, or has more threads than
///   ``restingCapacity`` or fewer than its capacity. If the interval is nil, only ``EventPool/rescale()`` calls it.
/// - The result becomes ``EventPool/capacity``. It is at least 1, and with an
///   ``EventPoolSharedBalancer`` at most 128; otherwise the program ends.
/// - The call is made on a thread of Dispatch, which then also makes the additional threads, and not on a thread that
///   dispatches or on one of the pool, so that a handler that does not return cannot delay it. If the central has a
///   clock of its own, it is made where that clock calls: by the thread that moves a ``ManualClock``, or in a task.
///   ``EventPool/rescale()``, which a handler may call, makes it on its caller's thread.
/// - Because of ``EventPool/rescale()`` several threads may call it at once.
public protocol EventPoolScaling: Sendable {
  /// How often the pool asks while it is busy; nil for never. It is read once, when the pool is made.
  var interval: Duration? { get }

  /// With this many threads or fewer an idle pool stops asking.
  var restingCapacity: Int { get }

  /// The largest number that ``capacity(for:)`` returns; nil, the default, if that is not known. With it
  /// a number that the pool cannot have traps when the pool is made, and not later, under load.
  var maximumCapacity: Int? { get }

  /// Returns the number of threads that the pool is to have.
  ///
  /// - Parameter reading: The state of the pool.
  /// - Returns: The number; at least 1.
  ///
  /// **Threads**: one of Dispatch, or that of the central's own clock, and those that call ``EventPool/rescale()``:
  /// several at once.
  func capacity(for reading: EventPoolReading) -> Int
}

extension EventPoolScaling {
  /// Nil: the largest number is not known.
  public var maximumCapacity: Int? { nil }
}

/// The state of a pool at one moment, for its scaler.
public struct EventPoolReading: Sendable, Equatable {
  /// ``EventPool/capacity``, as the initialiser, the owner or the scaler has set it last.
  public var capacity: Int
  /// How many threads the pool has, as ``EventPool/withThreads(_:)`` lists them.
  public var threads: Int
  /// How many of them are inside a handler.
  public var busyThreads: Int
  /// How many events wait, without those that are being handled.
  public var waiting: Int
  /// How many events the pool has handled so far, including those of threads that have ended.
  public var handled: UInt64
  /// When the pool took it, on the clock that its central was given; else nil.
  var time: Duration?

  /// Makes a reading, to test a scaler with.
  public init(capacity: Int, threads: Int, busyThreads: Int, waiting: Int, handled: UInt64) {
    self.capacity = capacity
    self.threads = threads
    self.busyThreads = busyThreads
    self.waiting = waiting
    self.handled = handled
  }

  /// Whether the figures are equal, whenever they were taken.
  public static func == (one: EventPoolReading, other: EventPoolReading) -> Bool {
    (one.capacity, one.threads, one.busyThreads, one.waiting, one.handled)
      == (other.capacity, other.threads, other.busyThreads, other.waiting, other.handled)
  }
}

/// Never changes ``EventPool/capacity``: the scaler of a pool that is made without one.
@usableFromInline
package struct FixedScaler: EventPoolScaling {
  @usableFromInline
  package init() {}

  @usableFromInline package var interval: Duration? { nil }
  @usableFromInline package var restingCapacity: Int { 1 }
  @usableFromInline package func capacity(for reading: EventPoolReading) -> Int { reading.capacity }
}
