// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Disks: `/proc/diskstats`, one line for each block device.
///
/// Only whole devices count: the figures of a disk include its partitions, and the loop, mapped and striped
/// devices that it stores.
enum DiskReader {
  static let path = "/proc/diskstats"
  private static let sector: UInt64 = 512

  static func parse(_ line: inout ByteScanner, at time: UInt64, into samples: inout [Sample]) {
    var event = DiskEvent(time: time, readBytes: 0, writtenBytes: 0, operations: 0)
    var disk = UnsafeRawBufferPointer(start: nil, count: 0)
    while !line.isAtEnd {
      // The columns: major minor name, reads merged sectors ms, writes merged sectors ms.
      line.skipWords(2)
      line.skipSpaces()
      if !Self.isVirtual(line) {
        let name = line.word()
        if !Self.isPartition(name, of: disk) {
          disk = name
          event.operations &+= line.number() ?? 0
          line.skipWords(1)
          event.readBytes &+= (line.number() ?? 0) &* Self.sector
          line.skipWords(1)
          event.operations &+= line.number() ?? 0
          line.skipWords(1)
          event.writtenBytes &+= (line.number() ?? 0) &* Self.sector
        }
      }
      line.skipLine()
    }
    samples.append(.disk(event))
  }

  private static func isVirtual(_ line: ByteScanner) -> Bool {
    var name = line
    return name.take("loop") || name.take("ram") || name.take("zram") || name.take("dm-")
      || name.take("md")
  }

  /// `sda1` is a partition of `sda`, and `nvme0n1p2` of `nvme0n1`. The kernel lists it after its disk.
  private static func isPartition(
    _ name: UnsafeRawBufferPointer, of disk: UnsafeRawBufferPointer
  ) -> Bool {
    guard let last = disk.last, name.count > disk.count, name.starts(with: disk) else {
      return false
    }
    let next = name[disk.count]
    return isDigit(last) ? next == UInt8(ascii: "p") : isDigit(next)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
