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

/// Likewise of the thousand seeds of a deterministic central, each tenth: what it runs, it runs on one thread, so that
/// a sanitizer sees no more in a thousand orders, which take it two minutes.
let seedStep = orderStep == 1 ? 1 : 10
