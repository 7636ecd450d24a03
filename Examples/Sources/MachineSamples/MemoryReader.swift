// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Memory: `/proc/meminfo`, whose figures are in units of 1,024 bytes.
enum MemoryReader {
  static let path = "/proc/meminfo"

  static func parse(_ line: inout ByteScanner, at time: UInt64, into samples: inout [Sample]) {
    var event = MemoryEvent(time: time, total: 0, available: 0, dirty: 0)
    while !line.isAtEnd {
      if line.take("MemTotal:") {
        event.total = (line.number() ?? 0) &* 1024
      } else if line.take("MemAvailable:") {
        event.available = (line.number() ?? 0) &* 1024
      } else if line.take("Dirty:") {
        event.dirty = (line.number() ?? 0) &* 1024
        // The rest is not needed.
        break
      }
      line.skipLine()
    }
    samples.append(.memory(event))
  }
}
