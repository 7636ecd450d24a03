// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// During which generations of a receiver its central was observed. The events of those are counted, whenever the
/// receiver takes them: so what is dispatched while somebody looks on is counted exactly, and nothing else is.
struct ObservedGenerations {
  /// The first generation of an observation, and the first one after it, in turns. It grows.
  private var changes: [UInt32] = []
  private var last = UInt32.max
  private(set) var isOn = false

  /// Two of each observation; older ones are forgotten: events that wait for so long are not counted. That many take 4
  /// kB for each type at each receiver.
  private static let most = 1_024

  var isEmpty: Bool { changes.isEmpty }

  /// Begins or ends an observation.
  mutating func change(to isOn: Bool, at generation: UInt32) {
    guard isOn != self.isOn else { return }
    self.isOn = isOn
    last = generation
    // An even number, so that they still take turns.
    if changes.count == Self.most { changes.removeFirst(2) }
    changes.append(generation)
  }

  @inline(__always)
  func contains(_ generation: UInt32) -> Bool {
    generation >= last ? isOn : containsOld(generation)
  }

  @inline(never)
  private func containsOld(_ generation: UInt32) -> Bool {
    // How many of them there were by then.
    var (count, end) = (0, changes.count)
    while count < end {
      let middle = (count + end) / 2
      if changes[middle] <= generation { count = middle + 1 } else { end = middle }
    }
    return count % 2 != 0
  }
}
