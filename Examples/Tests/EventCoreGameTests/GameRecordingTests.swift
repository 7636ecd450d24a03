// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreRecording
import Foundation
import Testing

@testable import EventCoreGame

/// What was played once can be played again, bit for bit.
@Suite struct GameRecordingTests {
  static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Recordings").path

  static let types: [any RecordableEvent.Type] = [Beginning.self, Input.self, Ending.self]

  func replay(_ recording: EventRecording, core: EventCentral.Core) -> Game {
    let game = Game(core: core)
    game.keys = .recording(recording.player(on: game.world))
    while game.ending == nil { game.step() }
    return game
  }

  @Test(arguments: EventCentral.Core.available)
  func theCommittedRecordingEndsWithTheCommittedFrame(core: EventCentral.Core) throws {
    let file = URL(filePath: Self.folder + "/raiders.jsonl")
    let recording = try EventRecording(contentsOf: file, of: Self.types)
    let frame = try String(contentsOfFile: Self.folder + "/raiders.frame", encoding: .utf8)
    #expect(replay(recording, core: core).frame == frame)
  }

  @Test(arguments: EventCentral.Core.available) func aGameThatIsRecordedIsReplayed(core: EventCentral.Core) throws {
    try withFile { file in
      let played = Game(core: core)
      played.keys = .bot
      let recorder = try EventRecorder(on: played.pump, of: Self.types, to: file, as: .jsonLines)
      played.begin(seed: 5)
      while played.steps < 2000 { played.step() }
      played.end()
      played.step()
      #expect(try recorder.finish().recorded > 100)

      let recording = try EventRecording(contentsOf: file, of: Self.types)
      #expect(replay(recording, core: core).frame == played.frame)
    }
  }

  @Test func aRecordingThatWasCutIsReplayedToItsEnd() throws {
    try withFile { file in
      let whole = try String(contentsOfFile: Self.folder + "/raiders.jsonl", encoding: .utf8)
      try whole.prefix(whole.count / 2).write(to: file, atomically: false, encoding: .utf8)
      let recording = try EventRecording(contentsOf: file, of: Self.types, accepting: [.damaged])
      #expect(recording.damage != nil)
      #expect(recording.count > 5)
      #expect(replay(recording, core: .default).ending == 0)
    }
  }

  func withFile(_ body: (_ file: URL) throws -> Void) throws {
    let file = URL(filePath: NSTemporaryDirectory() + "raiders-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    try body(file)
  }
}
