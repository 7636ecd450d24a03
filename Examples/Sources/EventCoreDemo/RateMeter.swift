// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Turns a counter into a rate, over windows of time. It takes the times of the samples, so that a replay
/// gives the same rates.
struct RateMeter {
  private let window: UInt64
  private var start: (time: UInt64, counter: UInt64)?

  init(window: UInt64) {
    self.window = window
  }

  /// The rate per second, if this sample ends a window; otherwise nil. A counter that goes back, as the
  /// kernel's idle times sometimes do, gives 0.
  mutating func rate(at time: UInt64, counter: UInt64) -> Double? {
    guard let start else {
      self.start = (time, counter)
      return nil
    }
    guard time >= start.time, time - start.time >= window else { return nil }
    self.start = (time, counter)
    let difference = counter > start.counter ? counter - start.counter : 0
    return Double(difference) * 1e9 / Double(time - start.time)
  }
}

/// Turns the times of a processor into its share of work, likewise.
struct ShareMeter {
  private var busy: RateMeter
  private var total: RateMeter

  init(window: UInt64) {
    busy = RateMeter(window: window)
    total = RateMeter(window: window)
  }

  /// The share, from 0 to 1, if this sample ends a window; otherwise nil.
  mutating func share(at time: UInt64, busy: UInt64, total: UInt64) -> Double? {
    guard let work = self.busy.rate(at: time, counter: busy),
      let all = self.total.rate(at: time, counter: total)
    else { return nil }
    return all > 0 ? min(1, work / all) : 0
  }
}
