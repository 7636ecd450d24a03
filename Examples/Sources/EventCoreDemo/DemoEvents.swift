// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A rate far above its usual value. Stacked with `.highest`, so that it overtakes all other events.
struct SpikeAlarm: Eventable {
  var time: UInt64
  var source: Source
  var value: Double
  var usual: Double
}

/// One of a million events that are dispatched at once, queued with `.low`.
struct BurstEvent: Eventable {
  var number: UInt32
}

/// Background load, queued with `.lowest`. The load keys change its amount.
struct LoadEvent: Eventable {
  var number: UInt64
}
