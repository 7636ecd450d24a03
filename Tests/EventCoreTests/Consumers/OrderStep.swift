// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport

/// A run checks all of the million sequences of six posts, and in the short form every 97th of them. That is coprime to
/// ten, so that every lane still occurs at every place of the sequence.
let orderStep = areTestsShort ? 97 : 1

/// Likewise of the thousand seeds of a deterministic central, each 40th: what it runs, it runs on one thread, so that
/// a sanitizer sees no more in a thousand orders.
let seedStep = areTestsShort ? 40 : 1
