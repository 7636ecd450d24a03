// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Adds a thread when events have waited too long, or too many have waited, for some time, and retires
/// one when a thread has been idle for a longer time.
///
/// ```swift
/// EventPool<ImageProcessor>(capacity: 2, scaler: .dynamic(2...8))
/// ```
///
/// It changes the number by one thread at a time; a pool outside of its minimum and maximum goes to the nearer of the two
/// at once. It does not oscillate: the limits for growing and shrinking lie apart, each condition has to hold without a
/// break for its time, and every change restarts both times.
///
/// The waiting time is estimated from the events that wait and those that were handled since the scaler
/// was last asked (Little's law), so that no event has to read a clock. If events wait and none was
/// handled, the wait counts as too long. Do not use one scaler for several pools.
public final class EventPoolDynamicScaler: EventPoolScaling {
  private struct State {
    var last: (time: Duration, handled: UInt64)?
    var tooSmallSince: Duration?
    var tooLargeSince: Duration?
  }

  /// The smallest number of threads that the scaler asks for.
  public let minimum: Int
  /// The largest number of threads that the scaler asks for.
  public let maximum: Int
  /// How often the pool asks while it is busy; nil if it asks only in ``EventPool/rescale()``.
  public let interval: Duration?
  private let (growWait, growAfter, shrinkAfter): (Duration, Duration, Duration)
  private let (growDepth, shrinkDepth): (Int, Int)
  private let now: (@Sendable () -> Duration)?
  private let state = Guarded(State())

  /// Makes a scaler.
  ///
  /// - Parameters:
  ///   - minimum: The smallest number of threads; at least 1.
  ///   - maximum: The largest number of threads.
  ///   - growWait: The pool is too small if events wait longer than this, by the estimate.
  ///   - growDepth: It is also too small if more than this many events wait for each thread.
  ///   - growAfter: How long it has to be too small before a thread is added.
  ///   - shrinkDepth: The pool is too large if a thread is idle and at most this many events wait for each
  ///     thread; at least 0, and no more than `growDepth`.
  ///   - shrinkAfter: How long it has to be too large before a thread is retired.
  ///   - interval: How often the pool asks while it is busy; nil if it asks only in
  ///     ``EventPool/rescale()``.
  ///   - now: For tests: a clock that never goes back, from any origin; nil takes that of the pool's central.
  public init(
    minimum: Int = 1, maximum: Int, growWait: Duration = .milliseconds(20), growDepth: Int = 32,
    growAfter: Duration = .milliseconds(100), shrinkDepth: Int = 1, shrinkAfter: Duration = .seconds(5),
    interval: Duration? = .milliseconds(20), now: (@Sendable () -> Duration)? = nil
  ) {
    require(
      minimum >= 1 && maximum >= minimum,
      """
      A scaler keeps a pool between a minimum of at least 1 and a maximum that is no less, and these \
      are \(minimum) and \(maximum): give it both in that order.
      """)
    require(
      shrinkDepth >= 0 && growDepth >= shrinkDepth && min(growWait, growAfter, shrinkAfter) >= .zero,
      """
      A scaler's shrinkDepth is at least 0 and no more than its growDepth, or a pool would grow and \
      shrink in turn, and its times are not negative; the depths are \(shrinkDepth) and \(growDepth), \
      growWait \(growWait), growAfter \(growAfter), shrinkAfter \(shrinkAfter): change what breaks this.
      """)
    (self.minimum, self.maximum, self.interval) = (minimum, maximum, interval)
    (self.growWait, self.growAfter, self.shrinkAfter) = (growWait, growAfter, shrinkAfter)
    (self.growDepth, self.shrinkDepth) = (growDepth, shrinkDepth)
    self.now = now
  }

  /// An idle pool rests with ``minimum`` threads.
  public var restingCapacity: Int { minimum }

  /// It never asks for more than ``maximum``.
  public var maximumCapacity: Int? { maximum }

  /// Returns one thread more or one less than the pool has, or the same number, within ``minimum`` and
  /// ``maximum``; for a pool that is outside of them the nearer one.
  ///
  /// **Threads**: any, several at once.
  ///
  /// **Complexity**: O(1); reads a clock.
  public func capacity(for reading: EventPoolReading) -> Int {
    // A central without a clock of its own follows the system's.
    let time = now?() ?? reading.time ?? .nanoseconds(Int64(clamping: monotonicNanoseconds()))
    return state.withLock { state in
      let wait = estimatedWait(reading, since: state.last, at: time)
      state.last = (time, reading.handled)
      let isTooDeep = !isWithin(reading.waiting, growDepth, each: max(1, reading.threads))
      let isTooSmall = isTooDeep || wait.map { $0 > growWait } ?? false
      let isTooLarge =
        !isTooSmall && reading.busyThreads < reading.threads
        && isWithin(reading.waiting, shrinkDepth, each: reading.threads)
      var capacity = min(max(reading.capacity, minimum), maximum)
      if capacity == reading.capacity {
        // A reading that does not tell the wait leaves a time that has begun as it is.
        if wait != nil || isTooDeep, hold(&state.tooSmallSince, isTooSmall, at: time, for: growAfter) {
          capacity = min(capacity + 1, maximum)
        }
        if hold(&state.tooLargeSince, isTooLarge, at: time, for: shrinkAfter) {
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

  /// How long an event that is dispatched now would wait; nil if the readings do not tell it yet, or came in another
  /// order than they were made, from several threads.
  private func estimatedWait(
    _ reading: EventPoolReading, since last: (time: Duration, handled: UInt64)?, at time: Duration
  ) -> Duration? {
    guard reading.waiting > 0 else { return .zero }
    guard let last, time > last.time, reading.handled >= last.handled else { return nil }
    let handled = reading.handled - last.handled
    guard handled > 0 else { return .seconds(Int64.max / 2) }
    return (time - last.time) / Double(handled) * Double(reading.waiting)
  }

  /// Whether a condition has held without a break for the time `span`.
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
  /// Adjusts the number of threads to the events that wait: `.dynamic(2...8)`.
  /// ``EventPoolDynamicScaler`` itself has further parameters.
  ///
  /// - Parameter threads: The smallest number, at least 1, and the largest.
  public static func dynamic(_ threads: ClosedRange<Int>) -> EventPoolDynamicScaler {
    EventPoolDynamicScaler(minimum: threads.lowerBound, maximum: threads.upperBound)
  }
}
