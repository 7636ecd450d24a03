// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import RawCore

/// The same load in plain C on the same core; see RawCore.
final class RawTrial: Trial {
  private let raw: OpaquePointer
  private let events: Int
  private let deliveries: Double

  init(_ load: Load, payloadBytes: Int, lanes: Bool = false, batch: Int = 1) {
    var description = evb_load()
    description.producers = UInt32(load.producers)
    description.mailboxes = UInt32(load.consumers)
    description.handlers = UInt32(load.handlers)
    description.batch = UInt32(batch)
    description.random_lanes = lanes
    description.size = payloadBytes
    raw = evb_raw_open(&description)
    events = load.events
    deliveries = Double(load.events * load.consumers * load.handlers)
  }

  func run() -> Double {
    _ = evb_raw_run(raw, UInt64(events / 8))
    return Double(evb_raw_run(raw, UInt64(events))) / deliveries
  }

  func end() {
    evb_raw_close(raw)
  }
}
