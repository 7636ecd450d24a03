// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Processors, interrupts and context switches: `/proc/stat`.
enum StatReader {
  static let path = "/proc/stat"

  static func parse(_ line: inout ByteScanner, at time: UInt64, into samples: inout [Sample]) {
    var interrupts = InterruptEvent(time: time, hard: 0, soft: 0)
    var switches = ContextSwitchEvent(time: time, switches: 0, forks: 0, running: 0, blocked: 0)
    while !line.isAtEnd {
      if line.take("cpu") {
        // The first of these lines is the sum of the others, and has no number.
        if let index = line.isAtSpace ? nil : line.number() {
          samples.append(.cpu(Self.processor(UInt32(truncatingIfNeeded: index), time, &line)))
        }
      } else if line.take("intr ") {
        interrupts.hard = line.number() ?? 0
      } else if line.take("softirq ") {
        interrupts.soft = line.number() ?? 0
      } else if line.take("ctxt ") {
        switches.switches = line.number() ?? 0
      } else if line.take("processes ") {
        switches.forks = line.number() ?? 0
      } else if line.take("procs_running ") {
        switches.running = UInt32(truncatingIfNeeded: line.number() ?? 0)
      } else if line.take("procs_blocked ") {
        switches.blocked = UInt32(truncatingIfNeeded: line.number() ?? 0)
      }
      line.skipLine()
    }
    samples.append(.interrupts(interrupts))
    samples.append(.switches(switches))
  }

  /// The columns: user nice system idle iowait irq softirq steal. Those of guests, which follow, are
  /// included in `user`.
  private static func processor(
    _ index: UInt32, _ time: UInt64, _ line: inout ByteScanner
  ) -> CPUTimeEvent {
    var event = CPUTimeEvent(time: time, index: index, busy: 0, total: 0)
    for column in 0..<8 {
      guard let ticks = line.number() else { break }
      event.total &+= ticks
      if column != 3, column != 4 { event.busy &+= ticks }
    }
    return event
  }
}

extension ByteScanner {
  fileprivate var isAtSpace: Bool {
    var copy = self
    return copy.take(" ")
  }
}
