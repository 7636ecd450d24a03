// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Steps of one length within frames of any length, for a simulation whose result must not depend on the frame rate.
///
/// ```swift
/// var clock = FixedStep(every: .seconds(1) / 50, atMost: 5)
/// while game.isRunning {
///   for step in clock.steps(until: .now) {
///     pump.run(limit: 10_000)             // inside the step: each event reaches exactly one step
///     game.simulate(step, for: clock.length)
///   }
///   game.draw(between: clock.interpolation)
/// }
/// ```
///
/// A frame can have no step, or several. An event that is read once a frame and shown to each of its steps is
/// therefore lost or doubled. A pump has neither fault if it runs inside the step: what comes during a frame without a
/// step waits, and of several steps the first takes it.
///
/// It is a value, and knows no clock but the instants that it is given.
///
/// **Threads**: a value; each copy goes on by itself.
public struct FixedStep: Sendable {
  /// How long a step is.
  public let length: Duration
  /// The most steps of one frame.
  public let most: Int
  /// How many steps there have been; the number of the next one.
  public private(set) var count = 0
  /// How many steps were given up, since a frame was due more than ``most``: the simulation is behind the clock by that
  /// many ``length``s.
  public private(set) var skipped = 0
  /// How far the last frame was on the way from its last step to the next one, from 0 up to but not including 1: what is
  /// drawn lies that far between the state before the last step and the state after it.
  public private(set) var interpolation = 0.0
  /// The instant at which step 0 would have begun, had no steps been skipped.
  private var start: ContinuousClock.Instant

  /// Begins to count.
  ///
  /// - Parameters:
  ///   - length: How long a step is. It is kept exactly, to the attosecond: `.seconds(1) / 60` does not drift.
  ///   - most: The most steps of one frame. If more are due, since the program was stopped or the steps take longer than
  ///     their length, the rest is skipped, and counted.
  ///   - start: When step 0 begins. It is due one length later.
  public init(every length: Duration, atMost most: Int = 8, from start: ContinuousClock.Instant = .now) {
    require(
      length > .zero,
      """
      The steps of a FixedStep take a time above zero, and these take \(length): pass how long one is, such as \
      .seconds(1) / 60.
      """)
    require(
      most > 0,
      """
      A frame of a FixedStep may have at least one step, and this one at most \(most): pass 1 or more, or the simulation \
      stands still.
      """)
    (self.length, self.most, self.start) = (length, most, start)
  }

  /// Begins a frame: counts the steps that are due, and says how far it is to the next one.
  ///
  /// - Parameter now: The time of the frame. One that is earlier than that of the frame before has no step.
  /// - Returns: The numbers of the frame's steps, which are due: do all of them. They go on from the last frame's, and
  ///   none is left out, since skipped steps get no number.
  ///
  /// **Complexity**: O(1).
  public mutating func steps(until now: ContinuousClock.Instant) -> Range<Int> {
    let elapsed = max(.zero, start.duration(to: now)).attoseconds
    let due = Int(clamping: elapsed / length.attoseconds)
    let missing = max(0, due - count)
    let steps = min(missing, most)
    let excess = missing - steps
    // The clock of the steps is set back, so that the next frame does not find the same steps due.
    start += length * excess
    skipped += min(excess, .max - skipped)
    count += steps
    let rest = max(0, elapsed - length.attoseconds * Int128(count + excess))
    // The nearest Double may be 1.
    interpolation = min(Double(rest) / Double(length.attoseconds), 1.0.nextDown)
    return count - steps..<count
  }
}
