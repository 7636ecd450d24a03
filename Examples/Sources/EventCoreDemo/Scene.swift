// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The simulation of the loop: gauges that follow the latest state with some inertia, by one step a frame.
struct Scene {
  /// The part of the way to its target that a gauge goes in one step.
  private static let pull = 0.08

  private(set) var processors: [Double] = []
  private(set) var interrupts = 0.0
  private(set) var switches = 0.0
  private(set) var received = 0.0
  private(set) var sent = 0.0
  private(set) var diskRead = 0.0
  private(set) var diskWritten = 0.0

  mutating func step(towards state: World) {
    while processors.count < state.processors.count { processors.append(0) }
    for index in state.processors.indices {
      Self.follow(&processors[index], state.processors[index])
    }
    Self.follow(&interrupts, state.interrupts)
    Self.follow(&switches, state.switches)
    Self.follow(&received, state.received)
    Self.follow(&sent, state.sent)
    Self.follow(&diskRead, state.diskRead)
    Self.follow(&diskWritten, state.diskWritten)
  }

  private static func follow(_ gauge: inout Double, _ target: Double) {
    gauge += (target - gauge) * pull
  }
}
