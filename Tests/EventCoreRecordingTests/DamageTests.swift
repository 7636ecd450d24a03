// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Testing

@testable import EventCoreRecording

@Suite("Recordings as bytes: cut, damaged, mutated")
struct DamageTests {
  /// The records of a recording: what is promised about everything before a damage.
  struct Records: Equatable {
    var lines: [String]

    init(_ contents: RecordingContents, _ bytes: [UInt8]) {
      lines = contents.entries.map { "\($0.number) \($0.record) \(bytes[$0.payload])" }
    }
  }

  private static func sample(_ format: EventRecording.Format, _ name: String, records: Int = 8) throws -> Sample {
    var random = SeededRandom(seed: announcedSeed(name))
    return try Sample(format, records: records, random: &random)
  }

  /// How many of the sample's records that have a payload lie wholly before a byte.
  private static func records(of sample: Sample, before offset: Int) throws -> Records {
    let end = sample.ends.last { $0 <= offset } ?? 0
    return Records(try RecordingContents(Array(sample.bytes[..<end])), sample.bytes)
  }

  @Test("The checksum is CRC-32C")
  func checksum() {
    var checksum = Checksum()
    #expect(checksum.value == 0)
    let digits = Array("123456789".utf8)
    checksum.add(digits, in: 0..<4)
    checksum.add(digits, in: 4..<9)
    #expect(checksum.value == 0xE306_9283)
  }

  @Test("Varints come back, and what is none is refused")
  func varints() {
    for value in [0, 1, 127, 128, 300, .max, .max - 1, 1 << 63, 1 << 35] as [UInt64] {
      var bytes: [UInt8] = []
      bytes.appendVarint(value)
      var reader = ByteReader(rest: bytes[...])
      #expect(reader.varint() == value)
      #expect(reader.rest.isEmpty)
      var short = ByteReader(rest: bytes.dropLast())
      #expect(short.varint() == nil)
    }
    for bytes: [UInt8] in [[UInt8](repeating: 255, count: 9) + [2], [UInt8](repeating: 128, count: 11)] {
      var reader = ByteReader(rest: bytes[...])
      #expect(reader.varint() == nil)
    }
  }

  @Test("A whole recording has no damage", arguments: formats)
  func whole(format: EventRecording.Format) throws {
    let sample = try Self.sample(format, "whole")
    let contents = try RecordingContents(sample.bytes)
    #expect(contents.damage == nil)
    #expect((contents.entries.count, contents.missing, contents.start) == (7, 1, 1_000_000))
    #expect(contents.names == ["Mark"])
  }

  @Test("A file that is cut anywhere says where, and all before it can be used", arguments: formats)
  func cut(format: EventRecording.Format) throws {
    let sample = try Self.sample(format, "cut")
    for length in 0..<sample.bytes.count {
      let bytes = Array(sample.bytes[..<length])
      let contents = try RecordingContents(bytes)
      #expect(Records(contents, bytes) == (try Self.records(of: sample, before: length)))
      let damage = try #require(contents.damage)
      #expect(damage.reason == .damaged)
      #expect(damage.recordNumber == sample.ends.filter { $0 <= length }.count - (length < sample.ends[0] ? -1 : 0))
      let frame = sample.frames.last { $0 <= length } ?? (format == .binary ? min(length, 6) : 0)
      #expect(damage.byteOffset == frame, "cut at \(length)")
      #expect(damage.description.contains("at byte \(frame)"))
    }
  }

  @Test("A byte that is changed is found in its frame, and all before it can be used", arguments: formats)
  func flipped(format: EventRecording.Format) throws {
    let sample = try Self.sample(format, "flipped")
    for offset in sample.bytes.indices {
      for change: UInt8 in [1, 16, 128, 255] {
        var bytes = sample.bytes
        bytes[offset] ^= change
        if offset < (format == .binary ? 6 : 11) {
          let error = #expect(throws: EventRecordingError.self) { try RecordingContents(bytes) }
          #expect(error?.reason == .notARecording)
          #expect(error?.byteOffset == 0)
          continue
        }
        let contents = try RecordingContents(bytes)
        #expect(Records(contents, bytes) == (try Self.records(of: sample, before: offset)))
        let frame = sample.frames.last { $0 <= offset } ?? (format == .binary ? 6 : 0)
        #expect(contents.damage?.byteOffset == frame, "byte \(offset) ^ \(change)")
      }
    }
  }

  @Test("Whatever is done to the bytes, all before the first change can be used", arguments: formats)
  func mutated(format: EventRecording.Format) throws {
    let sample = try Self.sample(format, "mutated", records: 30)
    var random = SeededRandom(seed: announcedSeed("mutated, changes"))
    let whole = Records(try RecordingContents(sample.bytes), sample.bytes)
    for _ in 0..<500 {
      var bytes = sample.bytes
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let range = Self.range(in: bytes, &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes.removeSubrange(range)
        case 1: bytes.insert(contentsOf: bytes[range], at: Self.range(in: bytes, &random).lowerBound)
        case 2: for index in range { bytes[index] = .random(in: 0...255, using: &random) }
        case 3: bytes[range].reverse()
        default:
          // A frame that is taken out or doubled.
          let (from, to) = (sample.frames.randomElement(using: &random)!, sample.frames.randomElement(using: &random)!)
          guard max(from, to) <= bytes.count else { continue }
          bytes.replaceSubrange(min(from, to)..<max(from, to), with: bytes[from..<from])
        }
      }
      let same = zip(bytes, sample.bytes).prefix { $0 == $1 }.count
      guard let contents = try? RecordingContents(bytes) else {
        #expect(same < 11)
        continue
      }
      let before = try Self.records(of: sample, before: same)
      let found = Records(contents, bytes)
      #expect(found.lines.starts(with: before.lines))
      // The checksums chain the frames, so nothing behind the change is taken for a record.
      #expect(found == before || bytes == sample.bytes && found == whole)
      #expect((contents.damage == nil) == (bytes == sample.bytes))
    }
  }

  private static func range(in bytes: [UInt8], _ random: inout SeededRandom) -> Range<Int> {
    let begin = Int.random(in: 0..<max(1, bytes.count), using: &random)
    return min(begin, bytes.count)..<min(bytes.count, begin + .random(in: 0...20, using: &random))
  }

  @Test("Bytes that only begin as a recording crash nothing", arguments: formats)
  func noise(format: EventRecording.Format) throws {
    var random = SeededRandom(seed: announcedSeed("noise"))
    for _ in 0..<500 {
      let noise = (0..<Int.random(in: 0...60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let contents = try RecordingContents((format == .binary ? BinaryFormat.magic : LineFormat.magic) + noise)
      #expect(contents.damage != nil)
    }
  }

  @Test("Frames with a right checksum and anything in them crash nothing, and stop at none")
  func rightChecksums() throws {
    var random = SeededRandom(seed: announcedSeed("rightChecksums"))
    for _ in 0..<500 {
      var writer = BinaryFrameWriter(start: 0, types: ["Mark"])
      writer.add(Record(time: 1, type: 0, lane: 7), try encodePayload(Mark(1)))
      writer.addFrame(
        (0..<Int.random(in: 0...30, using: &random)).map { _ in
          Bool.random(using: &random) ? .random(in: 0...40, using: &random) : .random(in: 0...255, using: &random)
        })
      let recording = try? EventRecording(
        Data(writer.bytes), of: [Mark.self], accepting: [.damaged, .unknownTypes, .missingEvents])
      // A frame that says that it is of another version is the one fault which is not accepted.
      guard let recording else { continue }
      let central = EventCentral()
      var player = recording.player(on: central)
      var (events, errors) = (0, 0)
      while player.position < recording.count {
        do { events += try player.step() ? 1 : 0 } catch { errors += 1 }
      }
      #expect((1...2).contains(events + errors))
      #expect(events >= 1)
    }
  }

  @Test("Foreign bytes and later versions are errors that say so")
  func foreign() throws {
    for text in ["x", "{\"a\":1}\n", "EVCRED", "PK\u{3}\u{4}"] {
      let error = #expect(throws: EventRecordingError.self) {
        try EventRecording(Data(text.utf8), of: [Mark.self], accepting: [.damaged])
      }
      #expect(error?.reason == .notARecording)
    }
    var bytes = BinaryFormat.magic
    var checksum = Checksum()
    bytes += [3, 32, 2, 0]
    checksum.add(bytes, in: 0..<bytes.count)
    bytes.appendFixed(checksum.value)
    let error = #expect(throws: EventRecordingError.self) {
      try EventRecording(Data(bytes), of: [Mark.self], accepting: [.damaged])
    }
    #expect(error?.reason == .unsupportedVersion)
    #expect(error?.description.contains("has version 2") == true)
  }

  @Test("Bytes after the end are a damage, and all events can be used", arguments: formats)
  func trailing(format: EventRecording.Format) throws {
    let sample = try Self.sample(format, "trailing")
    let contents = try RecordingContents(sample.bytes + [0])
    #expect(contents.entries.count == 7)
    #expect(contents.damage?.byteOffset == sample.bytes.count)
    #expect(contents.damage?.description.contains("1 bytes after the last frame") == true)
  }
}
