// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import MachineSamples
import Synchronization

/// Computes rates over a tenth of a second from the samples, and queues each as a reading. It also handles alarms,
/// bursts and load, so that their lanes compete for one thread.
final class RateThread: EventThread, @unchecked Sendable {
  // Only the callbacks, which run on this thread, use the variables.
  let meter = Meter()
  /// How often a receiver accepted a reading. This thread writes; it is read after the thread's end.
  private let accepted = Atomic<Int>(0)
  /// How many events of bursts and load were handled so far. This thread writes, the sensor thread reads.
  private let fillersHandled = Atomic<UInt64>(0)

  private static let window: UInt64 = 100_000_000
  private var processors: [ShareMeter] = []
  private var interrupts = RateMeter(window: window)
  private var softInterrupts = RateMeter(window: window)
  private var switches = RateMeter(window: window)
  private var received = RateMeter(window: window)
  private var sent = RateMeter(window: window)
  private var diskRead = RateMeter(window: window)
  private var diskWritten = RateMeter(window: window)

  init(on central: EventCentral, waitStrategy: EventWaitStrategy) {
    super.init(on: central, waitStrategy: waitStrategy, name: "rates")
  }

  @available(*, unavailable, message: "needs a central")
  required init() { preconditionFailure("needs a central") }

  override func registerEventListeners() {
    addEventCallback(RateThread.onProcessor)
    addEventCallback(RateThread.onMemory)
    addEventCallback(RateThread.onInterrupts)
    addEventCallback(RateThread.onSwitches)
    addEventCallback(RateThread.onNetwork)
    addEventCallback(RateThread.onDisk)
    addEventCallback(RateThread.onAlarm)
    addEventCallback(RateThread.onBurst)
    addEventCallback(RateThread.onLoad)
  }

  /// How often a receiver accepted a reading. **Threads**: any.
  var dispatched: Int { accepted.load(ordering: .relaxed) }

  /// **Threads**: any.
  var fillers: UInt64 { fillersHandled.load(ordering: .acquiring) }

  private func onProcessor(_ event: CPUTimeEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.processor, priority, time, (event.time, UInt64(event.index), event.busy, event.total))
    let index = Int(event.index)
    while processors.count <= index {
      processors.append(ShareMeter(window: Self.window))
    }
    let share = processors[index].share(at: event.time, busy: event.busy, total: event.total)
    if let share { tell(.processor(index: index, share: share)) }
  }

  private func onMemory(_ event: MemoryEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.memory, priority, time, (event.time, event.total, event.available, event.dirty))
    tell(.memory(total: event.total, available: event.available))
  }

  private func onInterrupts(
    _ event: InterruptEvent, _ priority: EventPriority, _ time: DispatchTime
  ) {
    meter.count(.interrupts, priority, time, (event.time, event.hard, event.soft, 0))
    let hard = interrupts.rate(at: event.time, counter: event.hard)
    let soft = softInterrupts.rate(at: event.time, counter: event.soft)
    if let hard, let soft { tell(.interrupts(hard + soft)) }
  }

  private func onSwitches(
    _ event: ContextSwitchEvent, _ priority: EventPriority, _ time: DispatchTime
  ) {
    meter.count(.switches, priority, time, (event.time, event.switches, event.forks, 0))
    let rate = switches.rate(at: event.time, counter: event.switches)
    if let rate { tell(.switches(rate, running: event.running)) }
  }

  private func onNetwork(_ event: NetworkEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.network, priority, time, (event.time, event.receivedBytes, event.sentBytes, event.packets))
    let receivedRate = received.rate(at: event.time, counter: event.receivedBytes)
    let sentRate = sent.rate(at: event.time, counter: event.sentBytes)
    if let receivedRate, let sentRate { tell(.network(received: receivedRate, sent: sentRate)) }
  }

  private func onDisk(_ event: DiskEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.disk, priority, time, (event.time, event.readBytes, event.writtenBytes, event.operations))
    let readRate = diskRead.rate(at: event.time, counter: event.readBytes)
    let writtenRate = diskWritten.rate(at: event.time, counter: event.writtenBytes)
    if let readRate, let writtenRate { tell(.disk(read: readRate, written: writtenRate)) }
  }

  private func onAlarm(_ event: SpikeAlarm, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.alarms, dispatchedAt: time)
    meter.check(alarm: event)
  }

  /// The loop takes it in its next frame. In a run without a loop nobody does, and that costs next to nothing.
  private func tell(_ reading: Reading) {
    accepted.store(accepted.load(ordering: .relaxed) + reading.queue(on: central), ordering: .relaxed)
  }

  private func onBurst(_ event: BurstEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.low, dispatchedAt: time)
    countFiller()
  }

  private func onLoad(_ event: LoadEvent, _ priority: EventPriority, _ time: DispatchTime) {
    meter.count(.lowest, dispatchedAt: time)
    countFiller()
  }

  private func countFiller() {
    // Only this thread writes. Relaxed: only the number is read.
    fillersHandled.store(fillersHandled.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }
}
