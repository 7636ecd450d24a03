// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreGame

/// What was played once can be played again, bit for bit.
@Suite struct GameRecordingTests {
  static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Recordings").path

  @Test(arguments: EventCentral.Core.available)
  func theCommittedRecordingEndsWithTheCommittedFrame(core: EventCentral.Core) throws {
    let recording = try Recording(file: Self.folder + "/raiders.txt")
    let game = Game(seed: recording.seed, core: core)
    while game.steps < recording.steps { game.step(.recording(recording)) }
    #expect(game.frame == (try String(contentsOfFile: Self.folder + "/raiders.frame", encoding: .utf8)))
  }

  @Test(arguments: EventCentral.Core.available) func aGameThatIsRecordedIsReplayed(core: EventCentral.Core) throws {
    try withFile("") { path in
      let write = try Recording.write(to: path, seed: 5)
      let played = Game(seed: 5, core: core)
      played.onKey = { key, step in write("\(key) \(step)") }
      for _ in 0..<2000 { played.step(.bot) }
      write("end \(played.steps)")

      let recording = try Recording(file: path)
      #expect(recording.keys.count > 100)
      let replayed = Game(seed: recording.seed, core: core)
      while replayed.steps < recording.steps { replayed.step(.recording(recording)) }
      #expect(replayed.frame == played.frame)
    }
  }

  @Test(arguments: [
    ("seed 7\nfire 3\nfire 2\nend 9\n", 3, "\"fire 2\"", "end 4"),
    ("seed 7\nfire 3\njump 4\nend 9\n", 3, "\"jump 4\"", "end 4"),
    ("seed 7\nfire 3\nend 2\n", 3, "\"end 2\"", "end 4"),
    ("seed 7\nfire 3\n", 3, "no more", "end 4"),
    ("samples 7\nend 3\n", 1, "\"samples 7\"", "end 1"),
    ("fire 3\nend 4\n", 1, "\"fire 3\"", "end 1"),
    ("", 1, "no more", "end 1"),
  ]) func aDamagedRecordingSaysWhereAndWhatToDo(text: String, line: Int, found: String, repair: String) throws {
    try withFile(text) { path in
      let failure = #expect(throws: Recording.Failure.self) { try Recording(file: path) }
      let description = try #require(failure?.description)
      #expect(description.contains("\(path):\(line): "))
      #expect(description.contains("found \(found)"))
      #expect(description.contains("write \"\(repair)\""))
    }
  }

  func withFile(_ text: String, _ body: (_ path: String) throws -> Void) throws {
    let path = NSTemporaryDirectory() + "raiders-\(UUID().uuidString)"
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: path) }
    try body(path)
  }
}
