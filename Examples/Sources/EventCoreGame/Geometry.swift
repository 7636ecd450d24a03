// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

let pixel = 16

/// A position or a velocity, in sixteenths of a pixel. The simulation computes in whole numbers alone: they are the
/// same on every machine.
struct Point {
  var x, y: Int
  static func pixels(_ x: Int, _ y: Int) -> Point { Point(x: x * pixel, y: y * pixel) }
  static func + (a: Point, b: Point) -> Point { Point(x: a.x + b.x, y: a.y + b.y) }
  /// The pixel that it lies in. The shift rounds down on both sides of zero.
  var pixels: (x: Int, y: Int) { (x >> 4, y >> 4) }
}

/// The place that an object takes. Its size is in pixels.
struct Box {
  var at: Point
  let width, height: Int
  var middle: Int { at.x + width * pixel / 2 }

  func overlaps(_ other: Box) -> Bool {
    at.x < other.at.x + other.width * pixel && other.at.x < at.x + width * pixel
      && at.y < other.at.y + other.height * pixel && other.at.y < at.y + height * pixel
  }
}

/// Marsaglia's xorshift. The standard library does not promise the same numbers in every version, as a replay needs.
struct SeededRandom {
  private(set) var state: UInt64
  /// The state is never 0, and the multiplication separates neighbouring seeds.
  init(seed: UInt64) { state = (seed &* 0x9E37_79B9_7F4A_7C15) | 1 }

  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state
  }

  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
}
