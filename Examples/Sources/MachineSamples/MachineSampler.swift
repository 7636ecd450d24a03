// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Reads the counters of this machine.
///
/// **Threads**: one at a time.
package final class MachineSampler {
  private typealias Parser = (inout ByteScanner, _ time: UInt64, inout [Sample]) -> Void
  private let files: [(file: ProcFile, parse: Parser)]

  /// Opens the files. Throws on a machine without them.
  package init() throws {
    files = [
      (try ProcFile(StatReader.path), StatReader.parse),
      (try ProcFile(MemoryReader.path), MemoryReader.parse),
      (try ProcFile(NetworkReader.path), NetworkReader.parse),
      (try ProcFile(DiskReader.path), DiskReader.parse),
    ]
  }

  /// Appends a sample of each processor and one of every other source.
  package func read(at time: UInt64, into samples: inout [Sample]) throws {
    for (file, parse) in files {
      try file.read { parse(&$0, time, &samples) }
    }
  }
}
