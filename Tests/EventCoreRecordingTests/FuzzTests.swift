// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Testing

@testable import EventCoreRecording

/// What must hold for any bytes.
@Suite("Recordings as bytes: fuzzed")
struct FuzzTests {
  /// Reads any bytes as a recording, and replays what they have.
  ///
  /// - Returns: Why that does not hold what is promised; nil if it does.
  private static func fault(of bytes: [UInt8]) -> String? {
    let recording: EventRecording
    do {
      recording = try EventRecording(
        Data(bytes), of: [Mark.self, Note.self], accepting: [.damaged, .unknownTypes, .missingEvents])
    } catch {
      switch error.reason {
      case .notARecording: return error.byteOffset == 0 ? nil : "a foreign file, found at \(error.byteOffset as Int?)"
      case .unsupportedVersion: return nil
      default: return "\(error.reason), though it is accepted"
      }
    }
    if let damage = recording.damage {
      guard let offset = damage.byteOffset, let record = damage.recordNumber else { return "a damage without a place" }
      guard (0...bytes.count).contains(offset), record >= 1 else { return "a damage at \(offset), in record \(record)" }
      // What is before the damage is a recording that was cut there, with the same events.
      let before = try? EventRecording(
        Data(bytes[..<offset]), of: [Mark.self, Note.self], accepting: [.damaged, .unknownTypes, .missingEvents])
      if before?.count != recording.count { return "\(before?.count as Int?) events up to byte \(offset)" }
    }
    // Each takes two bytes at least, so that a small file cannot have many.
    if recording.count > bytes.count / 2 { return "\(recording.count) events in \(bytes.count) bytes" }
    var player = recording.player(on: EventCentral(core: .locking))
    var last: DispatchTime?
    while let next = player.nextTime {
      if let last, next < last { return "\(next) after \(last)" }
      last = next
      do { try player.step() } catch {
        guard error.reason == .undecodable, error.byteOffset.map({ (0..<bytes.count).contains($0) }) == true else {
          return "\(error.reason) at \(error.byteOffset as Int?)"
        }
      }
    }
    return player.position == recording.count ? nil : "a replay that stops at \(player.position) of \(recording.count)"
  }

  /// Numbers of which one bit more is too much somewhere.
  private static let numbers: [UInt64] = [
    0, 1, 9, 10, 15, 16, 25, 26, 127, 128, 255, 16_383, 16_384, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 32, 1 << 62, 1 << 63,
    .max - 1, .max,
  ]

  /// Parts of lines, right and wrong ones.
  private static let parts = [
    #""version":1"#, #""version":-1"#, #""version":1e400"#, #""start":0"#, #""start":18446744073709551615"#,
    #""start":18446744073709551616"#, #""time":0"#, #""time":1.5"#, #""time":18446744073709551615"#, #""left":0"#,
    #""left":4294967295"#, #""left":-1"#, #""type":"Mark""#, #""type":"a note, \"event\":""#, #""type":"\ud800""#,
    #""type":7"#, #""method":"queue""#, #""method":"stack""#, #""method":null"#, #""priority":"lowest""#,
    #""priority":"urgent""#, #""event":{"number":1,"source":0}"#, #""event":{"text":"x"}"#, #""event":"#,
    #""event":null"#,
    #""a":{"b":1,"event":2}"#, #""time":1,"time":2"#, "\u{0}", "{", "}", "[[[[", "\"",
  ]

  /// Bytes that are no recording, are nearly one, or are one with anything in it.
  private static func bytes(_ samples: [Sample], _ random: inout SeededRandom) -> [UInt8] {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: noise(60, &random)
    case 1: BinaryFormat.magic + noise(80, &random)
    case 2: LineFormat.magic + noise(80, &random)
    case 3, 4: frames(&random)
    case 5, 6: lines(&random)
    default: mutated(samples.randomElement(using: &random)!.bytes, &random)
    }
  }

  private static func noise(_ most: Int, _ random: inout SeededRandom) -> [UInt8] {
    (0..<Int.random(in: 0...most, using: &random)).map { _ in .random(in: 0...255, using: &random) }
  }

  /// Binary frames with right checksums.
  private static func frames(_ random: inout SeededRandom) -> [UInt8] {
    var writer = BinaryFrameWriter(
      start: numbers.randomElement(using: &random)!,
      types: ["Mark", "Other", "", Note.recordingName].filter { _ in Bool.random(using: &random) })
    for _ in 0..<Int.random(in: 0...6, using: &random) {
      var body = [UInt8.random(in: 0...40, using: &random)]
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        body.appendVarint(
          Bool.random(using: &random)
            ? numbers.randomElement(using: &random)! : .random(in: 0...3, using: &random))
      }
      if Bool.random(using: &random) { body += (try? encodePayload(Mark(1))) ?? Data() }
      if Int.random(in: 0..<4, using: &random) == 0 { body += noise(20, &random) }
      writer.addFrame(body)
    }
    if Bool.random(using: &random) { writer.end(left: Int.random(in: 0...3, using: &random)) }
    if Int.random(in: 0..<4, using: &random) == 0 { writer.bytes += noise(12, &random) }
    return writer.bytes
  }

  /// Lines with right checksums.
  private static func lines(_ random: inout SeededRandom) -> [UInt8] {
    var writer = LineFrameWriter(start: numbers.randomElement(using: &random)!, types: ["Mark", Note.recordingName])
    for _ in 0..<Int.random(in: 0...6, using: &random) {
      guard Int.random(in: 0..<3, using: &random) > 0 else {
        writer.add(
          Record(time: numbers.randomElement(using: &random)!, type: .random(in: 0...1, using: &random), lane: 7),
          try? encodePayload(Mark(2)))
        continue
      }
      writer.addLine((0..<Int.random(in: 1...6, using: &random)).map { _ in parts.randomElement(using: &random)! }
        .joined(separator: ","))
    }
    if Bool.random(using: &random) { writer.end(left: Int.random(in: 0...3, using: &random)) }
    return writer.bytes
  }

  private static func mutated(_ original: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
    var bytes = original
    for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
      let begin = Int.random(in: 0..<bytes.count, using: &random)
      let range = begin..<min(bytes.count, begin + .random(in: 1...9, using: &random))
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes.removeSubrange(range)
      case 1: bytes.insert(contentsOf: bytes[range], at: Int.random(in: 0...bytes.count, using: &random))
      case 2: bytes.removeLast(bytes.count - begin)
      default: for index in range { bytes[index] = .random(in: 0...255, using: &random) }
      }
    }
    return bytes
  }

  @Test("Any bytes give a recording up to a place that is named, or an error that names it; never more than they hold")
  func anyBytes() throws {
    let seed = announcedSeed("fuzzed recordings")
    var random = SeededRandom(seed: seed)
    let samples = try formats.map { try Sample($0, records: 12, random: &random) }
    for count in 0..<10_000 * stressFactor {
      let bytes = Self.bytes(samples, &random)
      if let fault = Self.fault(of: bytes) {
        Issue.record("seed \(seed), input \(count), \(Data(bytes).base64EncodedString()): \(fault)")
        return
      }
    }
  }

  @Test("A length that a small file claims takes no memory")
  func hugeLengths() throws {
    for length in Self.numbers where length > 40 {
      var bytes = BinaryFormat.magic
      bytes.appendVarint(length)
      let contents = try RecordingContents(bytes + [1, 2, 3, 4])
      #expect(contents.damage?.byteOffset == BinaryFormat.magic.count)
    }
  }
}
