// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import MachineSamples

/// The threads of one run, with their connections.
final class Engine {
  let central: EventCentral
  let world = World()
  let rates: RateThread
  let spikes: SpikeThread
  let filler: Filler
  let sensor: SensorThread

  init(
    core: EventCentral.Core, waitStrategy: EventWaitStrategy, source: any SampleSource,
    writer: RecordingWriter? = nil, load: Int = 0, keepsSamples: Bool = true
  ) {
    central = EventCentral(core: core)
    rates = RateThread(on: central, waitStrategy: waitStrategy, world: world)
    spikes = SpikeThread(on: central, waitStrategy: waitStrategy)
    filler = Filler(on: central, to: rates, load: load)
    sensor = SensorThread(
      on: central, source: source, writer: writer, filler: filler, keepsSamples: keepsSamples)
  }

  /// The latencies of both event threads so far, by lane.
  var latencies: [Latencies] {
    zip(rates.meter.latencies, spikes.meter.latencies).map { $0 + $1 }
  }

  /// Ends all threads in the direction in which events go, so that the last events of each find a receiver.
  func finish(_ stop: SensorThread.Stop = .now) -> Account {
    sensor.join(stop)
    let deadline = DispatchTime.now() + .seconds(10)
    // The rate thread has to run until the last alarm was dispatched.
    spikes.drain(until: deadline)
    rates.drain(until: deadline)
    return Account(
      dispatched: UInt64(sensor.dispatched + spikes.dispatched) + filler.dispatched,
      rates.statistics, spikes.statistics)
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

  init(dispatched: UInt64, _ threads: EventThreadStatistics...) {
    self.dispatched = dispatched
    delivered = threads.reduce(0) { $0 + $1.delivered }
    skipped = threads.reduce(0) { $0 + $1.skipped }
    cancelled = threads.reduce(0) { $0 + $1.cancelled }
  }

  /// How many events were lost. Negative if events arrived twice.
  var lost: Int64 {
    Int64(dispatched) - Int64(delivered) - Int64(skipped) - Int64(cancelled)
  }
}
