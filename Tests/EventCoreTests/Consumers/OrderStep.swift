// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A run checks all of the million sequences of six posts, and with `EVENTCORE_SHORT_TESTS=1`, which
/// the sanitizer runs set, every 97th of them. That is coprime to ten, so that every lane still occurs
/// at every place of the sequence.
let orderStep = getenv("EVENTCORE_SHORT_TESTS") == nil ? 1 : 97
