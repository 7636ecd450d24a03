// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A loop of 120 fixed steps a second with absolute deadlines, so that a slow frame does not delay later
/// ones.
struct GameLoop {
  static let rate = 120

  private(set) var frames = 0
  /// Frames that had not ended when the next one was due.
  private(set) var late = 0
  /// Frames that were left out because the loop was a quarter of a second late.
  private(set) var dropped = 0

  /// Calls `frame` with the nanoseconds since the start, until it returns false.
  mutating func run(_ frame: (_ time: UInt64, _ counts: GameLoop) -> Bool) {
    let start = Clock.now()
    let rate = UInt64(Self.rate)
    var number: UInt64 = 0
    while frame(Clock.now() - start, self) {
      frames += 1
      number += 1
      let deadline = start + number * Clock.second / rate
      let now = Clock.now()
      guard now > deadline else {
        Clock.sleep(until: deadline)
        continue
      }
      // The late frames follow without a pause, unless there are too many of them.
      late += 1
      let behind = (now - deadline) * rate / Clock.second
      if behind > rate / 4 {
        dropped += Int(behind)
        number += behind
      }
    }
  }
}
