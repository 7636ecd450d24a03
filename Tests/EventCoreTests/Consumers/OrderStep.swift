// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A run checks all of the million orders of six posts; with `EVENTCORE_SHORT_TESTS=1`, as the
/// sanitizer runs set it, every 97th: a stride that is coprime to ten and so reaches every pattern
/// of lanes.
let orderStep = getenv("EVENTCORE_SHORT_TESTS") == nil ? 1 : 97
