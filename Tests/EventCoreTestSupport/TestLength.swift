// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// How much more the stress tests do: 1, or 50 with `EVENTCORE_LONG_TESTS=1`.
public let stressFactor = getenv("EVENTCORE_LONG_TESTS") == nil ? 1 : 50

/// Whether the tests take their short form, by `EVENTCORE_SHORT_TESTS=1`. It is for runs beside one in full: those of
/// the sanitizers, which take many times as long for each step, and that of the build without the C core.
public let areTestsShort = getenv("EVENTCORE_SHORT_TESTS") != nil

/// Whether the tests run under a sanitizer, which has memory of its own, and keeps what was freed to find later uses:
/// there no test judges memory. The script that runs them sets `EVENTCORE_SANITIZED`.
public let isSanitized = getenv("EVENTCORE_SANITIZED") != nil

/// How often a test repeats what it does under load: `count`, and a fifth of it in the short form.
public func shortened(_ count: Int) -> Int { areTestsShort ? max(1, count / 5) : count }
