// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Why something could not be recorded, read or replayed.
public struct EventRecordingError: Error, Sendable, CustomStringConvertible {
  /// What is the matter.
  public enum Reason: Sendable {
    /// The bytes are no recording.
    case notARecording
    /// The recording has a version that this library does not know.
    case unsupportedVersion
    /// The recording is cut or damaged.
    case damaged
    /// The recording has events of types that were not passed.
    case unknownTypes
    /// The recording says itself that it lacks events.
    case missingEvents
    /// A payload is none of its type.
    case undecodable
    /// The system refused to open, read or write the file.
    case file
    /// A recorder could not record every event.
    case incomplete
  }

  /// What is the matter.
  public let reason: Reason
  /// Where in the file it is, in bytes from 0 on; nil if it is in no one place.
  public let byteOffset: Int?
  /// In which record it is, from 1 on; nil if it is in no one record.
  public let recordNumber: Int?
  /// Where it is, what was expected, what was found, and what to do.
  public let description: String

  init(_ reason: Reason, at byteOffset: Int? = nil, record: Int? = nil, _ description: String) {
    (self.reason, self.byteOffset, recordNumber, self.description) = (reason, byteOffset, record, description)
  }
}
