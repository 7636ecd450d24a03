// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Reads all sources of this machine at once: what one tick of the sensor thread takes.
///
/// **Threads**: one at a time.
package final class MachineSampler {
  private let stat: StatReader
  private let memory: MemoryReader
  private let network: NetworkReader
  private let disk: DiskReader

  /// Opens the files. Fails on a machine without them, with a sentence that says so.
  package init() throws {
    stat = try StatReader()
    memory = try MemoryReader()
    network = try NetworkReader()
    disk = try DiskReader()
  }

  /// Appends one sample of every source, the processors each their own.
  package func read(at time: UInt64, into samples: inout [Sample]) throws {
    try stat.read(at: time, into: &samples)
    try memory.read(at: time, into: &samples)
    try network.read(at: time, into: &samples)
    try disk.read(at: time, into: &samples)
  }
}
