// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Random numbers that a printed seed brings back (SplitMix64: Steele, Lea, Flood 2014).
public struct SeededRandom: RandomNumberGenerator {
  public let seed: UInt64
  private var state: UInt64

  public init(seed: UInt64 = .random(in: .min ... .max)) {
    self.seed = seed
    state = seed
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// How much more the stress tests do: 1, or 50 with `EVENTCORE_LONG_TESTS=1`.
public let stressFactor = getenv("EVENTCORE_LONG_TESTS") == nil ? 1 : 50
