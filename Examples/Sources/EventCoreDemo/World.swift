// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What the rate thread has found out, on its way to the loop.
enum Reading: Eventable {
  /// A processor's share of work, from 0 to 1.
  case processor(index: Int, share: Double)
  case memory(total: UInt64, available: UInt64)
  case interrupts(Double)
  case switches(Double, running: UInt32)
  case network(received: Double, sent: Double)
  case disk(read: Double, written: Double)
}

/// The state that the loop shows. It belongs to the loop, as does the pump whose callbacks change it, so it has no lock
/// and is never copied.
final class World {
  private(set) var processors: [Double] = []
  private(set) var memoryTotal: UInt64 = 0
  private(set) var memoryAvailable: UInt64 = 0
  private(set) var interrupts = 0.0
  private(set) var switches = 0.0
  private(set) var running: UInt32 = 0
  private(set) var received = 0.0
  private(set) var sent = 0.0
  private(set) var diskRead = 0.0
  private(set) var diskWritten = 0.0
  private(set) var spikes = 0
  private(set) var lastSpike: SpikeAlarm?

  /// Follows the events of a pump, which belongs to the same loop.
  init(following pump: EventPump) {
    pump.addEventCallback { [unowned self] (reading: Reading) in apply(reading) }
    pump.addEventCallback { [unowned self] (alarm: SpikeAlarm) in
      spikes += 1
      lastSpike = alarm
    }
  }

  private func apply(_ reading: Reading) {
    switch reading {
    case .processor(let index, let share):
      while processors.count <= index { processors.append(0) }
      processors[index] = share
    case .memory(let total, let available): (memoryTotal, memoryAvailable) = (total, available)
    case .interrupts(let rate): interrupts = rate
    case .switches(let rate, let running): (switches, self.running) = (rate, running)
    case .network(let received, let sent): (self.received, self.sent) = (received, sent)
    case .disk(let read, let written): (diskRead, diskWritten) = (read, written)
    }
  }
}
