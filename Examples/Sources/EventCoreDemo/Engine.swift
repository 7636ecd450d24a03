// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import MachineSamples

/// The threads of one run, with their connections.
final class Engine {
  let central: EventCentral
  let rates: RateThread
  let spikes: SpikeThread
  let filler: Filler
  let sensor: SensorThread

  init(
    core: EventCentral.Core, waitStrategy: EventWaitStrategy, source: any SampleSource,
    writer: RecordingWriter? = nil, load: Int = 0, keepsSamples: Bool = true
  ) {
    central = EventCentral(core: core)
    rates = RateThread(on: central, waitStrategy: waitStrategy)
    spikes = SpikeThread(on: central, waitStrategy: waitStrategy)
    filler = Filler(on: central, to: rates, load: load)
    sensor = SensorThread(
      on: central, source: source, writer: writer, filler: filler, keepsSamples: keepsSamples)
  }

  /// The latencies of both event threads so far, by lane.
  var latencies: [Latencies] {
    zip(rates.meter.latencies, spikes.meter.latencies).map { $0 + $1 }
  }

  /// How many alarms the rate thread has handled.
  var spikeCount: UInt64 { rates.meter.latencies[DemoLane.alarms.rawValue].count }

  /// Ends all threads in the direction in which events go, so that the last events of each find a receiver; the pump of
  /// a loop, if there is one, is the last.
  func finish(_ stop: SensorThread.Stop = .now, pump: EventPump? = nil) -> Account {
    sensor.join(stop)
    let deadline = DispatchTime.now() + .seconds(10)
    // The rate thread has to run until the last alarm was dispatched.
    spikes.drain(until: deadline)
    rates.drain(until: deadline)
    pump?.run()
    return Account(
      dispatched: UInt64(sensor.dispatched + spikes.dispatched + rates.dispatched) + filler.dispatched,
      [rates.statistics, spikes.statistics] + (pump.map { [$0.statistics] } ?? []))
  }

  /// A checksum of all samples, in their order within each type, and of all alarms. After `finish()`.
  var checksum: UInt64 { rates.meter.checksum ^ (spikes.meter.checksum &* 3) }
}

/// Where the events of a run went. An event counts once for each receiver.
struct Account {
  var dispatched: UInt64
  var delivered: UInt64
  var skipped: UInt64
  var cancelled: UInt64

  init(dispatched: UInt64, _ receivers: [EventThreadStatistics]) {
    self.dispatched = dispatched
    delivered = receivers.reduce(0) { $0 + $1.delivered }
    skipped = receivers.reduce(0) { $0 + $1.skipped }
    cancelled = receivers.reduce(0) { $0 + $1.cancelled }
  }

  /// How many events were lost. Negative if events arrived twice.
  var lost: Int64 {
    Int64(dispatched) - Int64(delivered) - Int64(skipped) - Int64(cancelled)
  }
}
