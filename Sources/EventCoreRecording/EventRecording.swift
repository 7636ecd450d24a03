// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// What an ``EventRecorder`` has written, read to be replayed.
///
/// ```swift
/// let recording = try EventRecording(contentsOf: file, of: [Input.self, Resize.self])
/// try await recording.replay(on: world, speed: 2)
/// ```
///
/// The bytes stay in memory; an event is decoded when it is replayed.
///
/// **Threads**: a value, which any thread may use.
public struct EventRecording: Sendable {
  /// How a recording is written. Both formats are read alike.
  public enum Format: Sendable {
    /// Short frames around payloads in JSON.
    case binary
    /// A line of JSON for each event.
    case jsonLines
  }

  /// Decodes an event and dispatches it.
  typealias Dispatch = @Sendable (ArraySlice<UInt8>, Record, EventCentral) throws -> Void

  /// When the recording was started, on the clock of its central.
  public let start: DispatchTime
  /// Where the recording is damaged; nil if it is whole.
  public let damage: EventRecordingError?
  /// How many events there are of each type that was not passed, by the names of the types.
  public let unknownTypes: [String: Int]
  /// How many events are missing, as the recorder noted: they could not be encoded, or waited at the end.
  public let missingCount: Int

  let bytes: [UInt8]
  /// In the order in which they are replayed.
  let entries: [RecordingContents.Entry]
  let names: [String]
  /// By the numbers of the types in the recording; nil for those that were not passed.
  let dispatches: [Dispatch?]

  /// How many events can be replayed.
  public var count: Int { entries.count }

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - file: Which file. The format is found out.
  ///   - types: The types of its events, which are found by ``RecordableEvent/recordingName``.
  ///   - faults: What may be the matter with it: `.damaged`, of which the events before the damage are used,
  ///     `.unknownTypes`, `.missingEvents`. All three can be read from the recording then.
  /// - Throws: If the file cannot be read, is no recording, or has a fault that is not accepted.
  ///
  /// **Complexity**: O(bytes), and O(n log n) for n events that were taken in another order than dispatched.
  public init(
    contentsOf file: URL, of types: [any RecordableEvent.Type],
    accepting faults: Set<EventRecordingError.Reason> = []
  ) throws(EventRecordingError) {
    guard let data = try? Data(contentsOf: file) else {
      throw EventRecordingError(.file, "There is no \(file.path) that can be read: pass a file of an EventRecorder's.")
    }
    try self.init(data, of: types, accepting: faults)
  }

  /// Reads the bytes of a file. All else is as for the file itself.
  public init(
    _ data: Data, of types: [any RecordableEvent.Type], accepting faults: Set<EventRecordingError.Reason> = []
  ) throws(EventRecordingError) {
    let known = Dictionary(uniqueKeysWithValues: zip(recordingNames(of: types), types.map { Self.dispatch($0) }))
    bytes = [UInt8](data)
    let contents = try RecordingContents(bytes)
    (start, damage) = (DispatchTime(uptimeNanoseconds: contents.start), contents.damage)
    (missingCount, names) = (contents.missing, contents.names)
    let dispatches = names.map { known[$0] }
    self.dispatches = dispatches
    let unknown = contents.entries.filter { dispatches[$0.record.type] == nil }
    unknownTypes = Dictionary(grouping: unknown) { contents.names[$0.record.type] }.mapValues(\.count)
    entries = contents.inOrderOfDispatch.filter { dispatches[$0.record.type] != nil }
    if let damage, !faults.contains(.damaged) { throw damage }
    if !unknownTypes.isEmpty, !faults.contains(.unknownTypes) {
      let found = unknownTypes.sorted { $0.key < $1.key }.map { "\($0.value) of \($0.key)" }.joined(separator: ", ")
      let rule = "The types of a recording are passed when it is read, and this one has others"
      throw EventRecordingError(.unknownTypes, "\(rule): \(found). Pass them, or accepting: [.unknownTypes].")
    }
    if missingCount > 0, !faults.contains(.missingEvents) {
      let found = "The recording lacks \(missingCount) events, which could not be encoded or waited at its end"
      throw EventRecordingError(.missingEvents, "\(found): record anew, or pass accepting: [.missingEvents].")
    }
  }

  private static func dispatch<Event: RecordableEvent>(_ type: Event.Type) -> Dispatch {
    { payload, record, central in
      let event = try decodePayload(type, payload)
      switch record.method {
      case .queue: event.queue(priority: record.priority, on: central)
      case .stack: event.stack(priority: record.priority, on: central)
      }
    }
  }
}
