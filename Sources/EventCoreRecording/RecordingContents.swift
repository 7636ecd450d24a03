// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What the bytes of a recording have in them, up to the first frame that is damaged.
struct RecordingContents {
  /// An event that can be replayed.
  struct Entry: Sendable {
    let record: Record
    let payload: Range<Int>
    /// Of the record in the file, from 1 on.
    let number: Int
  }

  /// In the order of the file.
  private(set) var entries: [Entry] = []
  private(set) var missing = 0
  private(set) var damage: EventRecordingError?
  /// In nanoseconds.
  private(set) var start: UInt64 = 0
  let names: [String]

  /// Reads all frames.
  init(_ bytes: [UInt8]) throws(EventRecordingError) {
    var reader = try Self.reader(bytes)
    var (records, version, isOpen) = (0, 1, true)
    do throws(FrameDamage) {
      while isOpen && version == 1 {
        switch try reader.next() {
        case .start(let number, let time): (version, start) = (number, time)
        case .event(let record, let payload):
          records += 1
          missing += payload == nil ? 1 : 0
          if let payload { entries.append(Entry(record: record, payload: payload, number: records)) }
        case .end(let left):
          missing += left
          isOpen = false
        }
      }
      guard isOpen || reader.offset == bytes.count else {
        throw FrameDamage(
          expected: "the end of the file", found: "\(bytes.count - reader.offset) bytes after the last frame")
      }
    } catch {
      damage = EventRecordingError(
        .damaged, at: reader.offset, record: records + 1,
        """
        The recording is cut or damaged at byte \(reader.offset), in record \(records + 1): expected \(error.expected), \
        found \(error.found). The \(records) records before can be used: pass accepting: [.damaged].
        """)
    }
    guard version == 1 else {
      throw EventRecordingError(
        .unsupportedVersion,
        "Recordings of version 1 can be read, and this one has version \(version): use the EventCore that wrote it.")
    }
    names = reader.names
  }

  /// A reader for the format of the bytes, which may be cut within the first of them.
  private static func reader(_ bytes: [UInt8]) throws(EventRecordingError) -> any FrameReader {
    if bytes.starts(with: BinaryFormat.magic.prefix(bytes.count)) { return BinaryFrameReader(bytes) }
    if bytes.starts(with: LineFormat.magic.prefix(bytes.count)) { return LineFrameReader(bytes) }
    throw EventRecordingError(
      .notARecording, at: 0,
      #"A recording begins with EVCREC or {"crc32c":", and these bytes do not: pass a file of an EventRecorder's."#)
  }

  /// In the order of their times. Those with the same time are in the order of D1, but within a stack lane in the
  /// reverse of it: they were taken last in, first out.
  var inOrderOfDispatch: [Entry] {
    func key(_ entry: Entry) -> (UInt64, UInt8, Int) {
      (entry.record.time, entry.record.lane, entry.record.method == .stack ? -entry.number : entry.number)
    }
    return entries.sorted { key($0) < key($1) }
  }
}
