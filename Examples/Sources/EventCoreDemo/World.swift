// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The latest state of this machine, as the rate thread writes it and the game loop reads it.
final class World: Sendable {
  struct State: Sendable {
    /// Each processor's share of work, from 0 to 1.
    var processors: [Double] = []
    var memoryTotal: UInt64 = 0
    var memoryAvailable: UInt64 = 0
    var interrupts = 0.0
    var softInterrupts = 0.0
    var switches = 0.0
    var running: UInt32 = 0
    var received = 0.0
    var sent = 0.0
    var diskRead = 0.0
    var diskWritten = 0.0
    var spikes = 0
    var lastSpike: SpikeAlarm?
  }

  private let state = Mutex(State())

  /// **Threads**: any. One copy under the mutex.
  var latest: State { state.withLock { $0 } }

  /// **Threads**: any. `change` is short: the loop waits for it.
  func update(_ change: (inout State) -> Void) {
    state.withLock { change(&$0) }
  }
}
