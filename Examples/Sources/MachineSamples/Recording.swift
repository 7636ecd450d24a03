// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The text format of recordings, version 1.
///
/// ```text
/// eventcore-samples 1 cpu=time,index,busy,total memory=time,total,available,dirty ...
/// cpu 0 0 86675 442077
/// interrupts 0 7812076 5102944
/// ...
/// end 70000
/// ```
///
/// The first line names the version and the fields. Each further line is a sample: its source, the
/// nanoseconds since the sampling began, and its counters. Times never go back. The last line has the
/// number of samples, by which a truncated file is detected.
package enum Recording {
  package static let header = """
    eventcore-samples 1 cpu=time,index,busy,total memory=time,total,available,dirty \
    interrupts=time,hard,soft switches=time,switches,forks,running,blocked \
    network=time,received,sent,packets disk=time,read,written,operations
    """

  /// The limits of a recording: a day, and the largest number of processors that Linux supports.
  package static let longestTime: UInt64 = 86_400 * 1_000_000_000
  package static let mostProcessors: UInt32 = 8192
}

/// What is wrong with a recording, and where.
package struct RecordingError: Error, Equatable, CustomStringConvertible {
  package var file: String
  package var line: Int
  package var reason: String

  package var description: String { "\(file), line \(line): \(reason)" }
}
