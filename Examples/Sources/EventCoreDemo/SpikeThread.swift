// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import MachineSamples
import Synchronization

/// Finds spikes in the samples, over windows of a twentieth of a second. For each spike its callbacks stack
/// an alarm with `.highest`.
final class SpikeThread: EventThread, @unchecked Sendable {
  // Only the callbacks, which run on this thread, use the variables.
  let meter = Meter()
  /// How often a receiver accepted an alarm. This thread writes; it is read after the thread's end.
  private let accepted = Atomic<Int>(0)

  private static let window: UInt64 = 50_000_000
  private var processors: [(meter: ShareMeter, detector: SpikeDetector)] = []
  private var memory = RateMeter(window: window)
  private var interrupts = RateMeter(window: window)
  private var switches = RateMeter(window: window)
  private var network = RateMeter(window: window)
  private var disk = RateMeter(window: window)
  private var memorySpikes = SpikeDetector(floor: 16 * 1_048_576)
  private var interruptSpikes = SpikeDetector(floor: 2_000)
  private var switchSpikes = SpikeDetector(floor: 2_000)
  private var networkSpikes = SpikeDetector(floor: 65_536)
  private var diskSpikes = SpikeDetector(floor: 1_048_576)

  init(on central: EventCentral, waitStrategy: EventWaitStrategy) {
    super.init(on: central, waitStrategy: waitStrategy, name: "spikes")
  }

  @available(*, unavailable, message: "needs a central")
  required init() { preconditionFailure("needs a central") }

  override func registerEventListeners() {
    addEventCallback(SpikeThread.onProcessor)
    addEventCallback(SpikeThread.onMemory)
    addEventCallback(SpikeThread.onInterrupts)
    addEventCallback(SpikeThread.onSwitches)
    addEventCallback(SpikeThread.onNetwork)
    addEventCallback(SpikeThread.onDisk)
  }

  /// How often a receiver accepted an alarm. **Threads**: any.
  var dispatched: Int { accepted.load(ordering: .relaxed) }

  private func onProcessor(_ event: CPUTimeEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.processor, priority, time, (event.time, UInt64(event.index), event.busy, event.total))
    let index = Int(event.index)
    while processors.count <= index {
      processors.append((ShareMeter(window: Self.window), SpikeDetector(floor: 0.5)))
    }
    let share = processors[index].meter.share(at: event.time, busy: event.busy, total: event.total)
    look(.processor, share, event.time, &processors[index].detector)
  }

  private func onMemory(_ event: MemoryEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.memory, priority, time, (event.time, event.total, event.available, event.dirty))
    // Memory that is allocated may be a spike; memory that is freed is none.
    let used = event.total > event.available ? event.total - event.available : 0
    look(.memory, memory.rate(at: event.time, counter: used), event.time, &memorySpikes)
  }

  private func onInterrupts(
    _ event: InterruptEvent, _ priority: EventPriority, _ time: DispatchTime
  ) {
    meter.count(.interrupts, priority, time, (event.time, event.hard, event.soft, 0))
    let rate = interrupts.rate(at: event.time, counter: event.hard)
    look(.interrupts, rate, event.time, &interruptSpikes)
  }

  private func onSwitches(
    _ event: ContextSwitchEvent, _ priority: EventPriority, _ time: DispatchTime
  ) {
    meter.count(.switches, priority, time, (event.time, event.switches, event.forks, 0))
    let rate = switches.rate(at: event.time, counter: event.switches)
    look(.switches, rate, event.time, &switchSpikes)
  }

  private func onNetwork(_ event: NetworkEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.network, priority, time, (event.time, event.receivedBytes, event.sentBytes, event.packets))
    let bytes = event.receivedBytes &+ event.sentBytes
    look(.network, network.rate(at: event.time, counter: bytes), event.time, &networkSpikes)
  }

  private func onDisk(_ event: DiskEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.disk, priority, time, (event.time, event.readBytes, event.writtenBytes, event.operations))
    let bytes = event.readBytes &+ event.writtenBytes
    look(.disk, disk.rate(at: event.time, counter: bytes), event.time, &diskSpikes)
  }

  private func look(
    _ source: Source, _ rate: Double?, _ time: UInt64, _ detector: inout SpikeDetector
  ) {
    guard let rate, let usual = detector.usual(for: rate, at: time) else { return }
    let alarm = SpikeAlarm(time: time, source: source, value: rate, usual: usual)
    let receivers = alarm.stack(priority: .highest, on: central)
    accepted.store(accepted.load(ordering: .relaxed) + receivers, ordering: .relaxed)
  }
}
