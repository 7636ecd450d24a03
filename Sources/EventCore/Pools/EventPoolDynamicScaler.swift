// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Adds a thread when, for some time, events wait too long or too many of them wait, and retires one
/// when a thread was idle for a longer time.
///
/// ```swift
/// EventPool<ImageProcessor>(
///   capacity: 2, scaler: .dynamic(2...8))
/// ```
///
/// It does not add and retire in turn: the limits for the two lie apart, each has to hold without a break
/// for its time, and every change starts both times anew. It adds and retires one thread at a time.
///
/// The waiting time is an estimate from what waits and what was handled since the scaler was last
/// asked (Little's law), so that no event pays for a clock; if nothing was handled and something
/// waits, it counts as too long. Give each pool a scaler of its own.
public final class EventPoolDynamicScaler: EventPoolScaling {
  /// When a pool is too small or too large; the parameters of the initialiser say what each means.
  package struct Limits: Sendable {
    package var growWait: Duration = .milliseconds(20)
    package var growDepth = 32
    package var growAfter: Duration = .milliseconds(100)
    package var shrinkDepth = 1
    package var shrinkAfter: Duration = .seconds(5)

    package init() {}

    /// Whether what is too small is never too large, too.
    var isOrdered: Bool {
      shrinkDepth >= 0 && growDepth >= shrinkDepth
        && min(growWait, growAfter, shrinkAfter) >= .zero
    }
  }

  private struct State {
    var last: (time: Duration, handled: UInt64)?
    var tooSmallSince: Duration?
    var tooLargeSince: Duration?
  }

  /// The least threads that the pool is to have.
  public let minimum: Int
  /// The most threads that the pool is to have.
  public let maximum: Int
  package let limits: Limits
  /// How often the pool asks while it is busy; nil for never by itself.
  public let interval: Duration?
  private let now: @Sendable () -> Duration
  private let state = Guarded(State())

  /// Makes a scaler.
  ///
  /// - Parameters:
  ///   - minimum: The least threads; at least 1.
  ///   - maximum: The most threads.
  ///   - growWait: The pool is too small if events wait longer than this, by the estimate.
  ///   - growDepth: It is also too small if more than this many events wait for each thread.
  ///   - growAfter: How long it has to be too small before a thread is added.
  ///   - shrinkDepth: The pool is too large if a thread is idle and at most this many events wait for each
  ///     thread; at least 0, and no more than `growDepth`.
  ///   - shrinkAfter: How long it has to be too large before a thread is retired.
  ///   - interval: How often the pool asks while it is busy. Nil: never by itself; see
  ///     ``EventPool/rescale()``.
  ///   - now: A clock that never goes back, from any origin; nil takes the system's. For tests.
  public convenience init(
    minimum: Int = 1, maximum: Int, growWait: Duration = .milliseconds(20), growDepth: Int = 32,
    growAfter: Duration = .milliseconds(100), shrinkDepth: Int = 1, shrinkAfter: Duration = .seconds(5),
    interval: Duration? = .milliseconds(20), now: (@Sendable () -> Duration)? = nil
  ) {
    var limits = Limits()
    (limits.growWait, limits.growDepth, limits.growAfter) = (growWait, growDepth, growAfter)
    (limits.shrinkDepth, limits.shrinkAfter) = (shrinkDepth, shrinkAfter)
    self.init(minimum: minimum, maximum: maximum, limits: limits, interval: interval, now: now)
  }

  package init(
    minimum: Int = 1, maximum: Int, limits: Limits,
    interval: Duration? = .milliseconds(20), now: (@Sendable () -> Duration)? = nil
  ) {
    require(
      minimum >= 1 && maximum >= minimum,
      """
      A scaler keeps a pool between a minimum of at least 1 and a maximum that is no less, and these \
      are \(minimum) and \(maximum): give it both in that order.
      """)
    require(
      limits.isOrdered,
      """
      A scaler's shrinkDepth is at least 0 and no more than its growDepth, or a pool would grow and shrink in \
      turn, and its times are not negative; these are \(limits): change those that are not so.
      """)
    self.minimum = minimum
    self.maximum = maximum
    self.limits = limits
    self.interval = interval
    self.now = now ?? { .nanoseconds(Int64(clamping: monotonicNanoseconds())) }
  }

  /// An idle pool rests with ``minimum`` threads.
  public var restingCapacity: Int { minimum }

  /// It never asks for more than ``maximum``.
  public var maximumCapacity: Int? { maximum }

  /// One thread more or less than there are, or as many, within the limits.
  ///
  /// **Threads**: any, one at a time.
  ///
  /// **Complexity**: O(1); reads a clock.
  public func capacity(for reading: EventPoolReading) -> Int {
    let time = now()
    return state.withLock { state in
      let wait = estimatedWait(reading, since: state.last, at: time)
      state.last = (time, reading.handled)
      let isTooSmall =
        !isWithin(reading.waiting, limits.growDepth, each: max(1, reading.threads))
        || wait.map { $0 > limits.growWait } ?? false
      let isTooLarge =
        !isTooSmall && reading.busyThreads < reading.threads
        && isWithin(reading.waiting, limits.shrinkDepth, each: reading.threads)
      var capacity = min(max(reading.capacity, minimum), maximum)
      if capacity == reading.capacity {
        if hold(&state.tooSmallSince, isTooSmall, at: time, for: limits.growAfter) {
          capacity = min(capacity + 1, maximum)
        }
        if hold(&state.tooLargeSince, isTooLarge, at: time, for: limits.shrinkAfter) {
          capacity = max(capacity - 1, minimum)
        }
      }
      if capacity != reading.capacity { (state.tooSmallSince, state.tooLargeSince) = (nil, nil) }
      return capacity
    }
  }

  /// Whether at most `depth` events wait for each thread.
  private func isWithin(_ waiting: Int, _ depth: Int, each threads: Int) -> Bool {
    let (most, isBeyond) = depth.multipliedReportingOverflow(by: threads)
    return isBeyond || waiting <= most
  }

  /// How long an event that is dispatched now would wait; nil if that cannot be told yet.
  private func estimatedWait(
    _ reading: EventPoolReading, since last: (time: Duration, handled: UInt64)?, at time: Duration
  ) -> Duration? {
    guard let last, time > last.time else { return nil }
    guard reading.waiting > 0 else { return .zero }
    let handled = reading.handled &- last.handled
    guard handled > 0 else { return .seconds(Int64.max / 2) }
    return (time - last.time) / Double(handled) * Double(reading.waiting)
  }

  /// Whether a condition has held without a break for a time.
  private func hold(
    _ since: inout Duration?, _ condition: Bool, at time: Duration, for span: Duration
  ) -> Bool {
    guard condition else {
      since = nil
      return false
    }
    let begin = since ?? time
    since = begin
    return time - begin >= span
  }
}

extension EventPoolScaling where Self == EventPoolDynamicScaler {
  /// Keeps the pool between two numbers of threads by what waits: `.dynamic(2...8)`.
  /// ``EventPoolDynamicScaler`` itself has more to set.
  ///
  /// - Parameter threads: The least, at least 1, and the most.
  public static func dynamic(_ threads: ClosedRange<Int>) -> EventPoolDynamicScaler {
    EventPoolDynamicScaler(minimum: threads.lowerBound, maximum: threads.upperBound)
  }
}
