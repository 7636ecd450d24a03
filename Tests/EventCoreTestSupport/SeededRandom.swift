// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Random numbers that a printed seed brings back (SplitMix64: Steele, Lea, Flood 2014).
public struct SeededRandom: RandomNumberGenerator {
  public let seed: UInt64
  private var state: UInt64

  /// - Parameter seed: By default another in each run, or that of `EVENTCORE_SEED`, as in the C
  ///   suite.
  public init(seed: UInt64 = environmentSeed ?? .random(in: .min ... .max)) {
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

/// `EVENTCORE_SEED`, as `strtoull` reads it: a seed from a message repeats its run as far as
/// threads allow.
public let environmentSeed: UInt64? = getenv("EVENTCORE_SEED").map { UInt64(strtoull($0, nil, 0)) }

/// Makes a seed for a test and writes it to the standard error before the test begins, so that it is
/// there even if a trap or a sanitizer ends the process.
public func announcedSeed(_ test: String) -> UInt64 {
  let seed = SeededRandom().seed
  let line = "\(test): EVENTCORE_SEED=\(seed)\n"
  _ = line.withCString { write(2, $0, strlen($0)) }
  return seed
}
