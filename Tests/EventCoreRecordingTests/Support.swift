// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation

@testable import EventCoreRecording

/// An event with a number and a source, whose encoding can fail.
struct Mark: RecordableEvent, Equatable {
  var number: Int
  var source = 0
  var fails = false

  enum CodingKeys: CodingKey { case number, source }

  struct Refusal: Error {}

  init(_ number: Int, source: Int = 0, fails: Bool = false) {
    (self.number, self.source, self.fails) = (number, source, fails)
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    number = try container.decode(Int.self, forKey: .number)
    source = try container.decode(Int.self, forKey: .source)
  }

  func encode(to encoder: any Encoder) throws {
    if fails { throw Refusal() }
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(number, forKey: .number)
    try container.encode(source, forKey: .source)
  }
}

/// A second type, with a name of its own.
struct Note: RecordableEvent, Equatable {
  static let recordingName = #"a note, "event":"#
  var text: String
}

/// An event as a receiver got it.
struct Received: Equatable, Sendable {
  var number: Int
  var priority: EventPriority
  var method: EventDispatchMethod
}

let formats: [EventRecording.Format] = [.binary, .jsonLines]
let lanes = EventDispatchMethod.allCases.flatMap { method in EventPriority.allCases.map { (method, $0) } }

func dispatch(
  _ event: some Eventable, _ method: EventDispatchMethod, _ priority: EventPriority, on central: EventCentral
) {
  switch method {
  case .queue: event.queue(priority: priority, on: central)
  case .stack: event.stack(priority: priority, on: central)
  }
}

/// Calls a closure with a file that is there for as long as the call.
func withFile<Result>(_ body: (URL) throws -> Result) rethrows -> Result {
  let file = FileManager.default.temporaryDirectory.appendingPathComponent("eventcore-\(UUID()).recording")
  defer { try? FileManager.default.removeItem(at: file) }
  return try body(file)
}

/// The same with a closure that waits.
func withFile<Result>(
  isolation: isolated (any Actor)? = #isolation, _ body: (URL) async throws -> Result
) async rethrows -> Result {
  let file = FileManager.default.temporaryDirectory.appendingPathComponent("eventcore-\(UUID()).recording")
  defer { try? FileManager.default.removeItem(at: file) }
  return try await body(file)
}

/// A recorder's `finish()` for code that blocks.
func finish(_ recorder: EventRecorder) throws { try recorder.finish() }

/// The marks of a recording in the order of its replay: each is taken before the next one is dispatched.
func marks(
  of recording: EventRecording, core: EventCentral.Core = .default
) throws -> [Received] {
  let central = EventCentral(core: core)
  let pump = EventPump(on: central)
  let log = Log<Received>()
  _ = pump.addLaneCallback { (mark: Mark, priority, method, _) in
    log.append(Received(number: mark.number, priority: priority, method: method))
  }
  var player = recording.player(on: central)
  while try player.step() { pump.run() }
  return log.entries
}

/// A small recording of marks, as bytes, and where its frames end: the start, the names, then the records.
struct Sample {
  let bytes: [UInt8]
  /// The end of what comes before the first record, and of each record.
  let ends: [Int]
  /// The end of each frame.
  let frames: [Int]

  init(_ format: EventRecording.Format, records: Int, random: inout SeededRandom) throws {
    var writer: any FrameWriter =
      format == .binary
      ? BinaryFrameWriter(start: 1_000_000, types: ["Mark"]) : LineFrameWriter(start: 1_000_000, types: ["Mark"])
    var ends = [writer.bytes.count]
    var time: UInt64 = 1_000_000
    for number in 0..<records {
      time += .random(in: 0...3_000_000, using: &random)
      let lane = UInt8.random(in: 0..<10, using: &random)
      let payload = number % 5 == 3 ? nil : try encodePayload(Mark(number))
      writer.add(Record(time: time, type: 0, lane: lane), payload)
      ends.append(writer.bytes.count)
    }
    writer.end(left: 0)
    bytes = writer.bytes
    self.ends = ends
    // The name of the type has a frame in the binary format.
    let first = format == .binary ? [ends[0] - (1 + 1 + 4 + 4), ends[0]] : [ends[0]]
    frames = first + ends.dropFirst() + [bytes.count]
  }
}
