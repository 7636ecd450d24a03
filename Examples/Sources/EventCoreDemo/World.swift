// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The latest state of this machine, which the rate thread writes and the game loop reads.
final class World: Sendable {
  struct State: Sendable {
    /// Each processor's share of work, from 0 to 1.
    var processors: [Double] = []
    var memoryTotal: UInt64 = 0
    var memoryAvailable: UInt64 = 0
    var interrupts = 0.0
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

  /// A copy of the state. **Threads**: any.
  var latest: State { state.withLock { $0 } }

  /// Changes the state. The closure has to be short, since the loop may wait for it. **Threads**: any.
  func update(_ change: (inout State) -> Void) {
    state.withLock { change(&$0) }
  }
}
