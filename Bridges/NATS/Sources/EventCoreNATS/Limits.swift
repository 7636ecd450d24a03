// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// How many messages of a subscription may wait: the client counts 1,024 times as many bytes in 32 bits.
let longestInbox = 2_000_000

extension Duration {
  /// A hundred years: as good as for ever, and the client's nanoseconds have room for it.
  private static let longest = Duration.seconds(100 * 365 * 86_400)

  /// At most a hundred years, so that it can be added to a time.
  var bounded: Duration { min(self, .longest) }

  /// At least 1, since the client takes 0 for its default, and at most a hundred years.
  var milliseconds: Int64 {
    let (seconds, attoseconds) = bounded.components
    return max(1, Int64(clamping: Int128(seconds) * 1000 + Int128(attoseconds) / 1_000_000_000_000_000))
  }
}

extension ContinuousClock.Instant {
  // Not a `Date`: the wall clock may be set meanwhile.
  init(after limit: Duration) { self = .now + .milliseconds(limit.milliseconds) }

  /// How many are left until then: at least 1, since the client takes 0 for its default.
  func milliseconds(atMost most: Int64 = .max) -> Int64 { min(most, (self - .now).milliseconds) }
}
