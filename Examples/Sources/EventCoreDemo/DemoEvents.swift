// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A rate that stands out of its past. Stacked with `.highest`: it overtakes whatever waits.
struct SpikeAlarm: Eventable {
  var time: UInt64
  var source: Source
  var value: Double
  var usual: Double
}

/// One of a million at once, queued with `.low`.
struct BurstEvent: Eventable {
  var number: UInt32
}

/// Work that nobody hurries for, queued with `.lowest`: what the load keys change.
struct LoadEvent: Eventable {
  var number: UInt64
}
