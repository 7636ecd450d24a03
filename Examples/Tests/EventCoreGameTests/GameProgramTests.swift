// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ArgumentParser
import EventCoreRecording
import Foundation
import Testing

@testable import EventCoreDemo
@testable import EventCoreGame

/// The command line, and what the program says without a terminal.
@Suite struct GameProgramTests {
  static let bot = ["--headless", "--bot", "--steps", "5"]

  /// Why a command line is refused; nil if it is not.
  func refusal(_ words: [String]) -> String? {
    do {
      _ = try Play.parse(words)
      return nil
    } catch {
      return Play.message(for: error)
    }
  }

  @Test func twoFilesOfOneNameAreRefused() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "game-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder + "/real", withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: "real")
    _ = FileManager.default.createFile(atPath: folder + "/real/keys", contents: Data())
    try FileManager.default.createSymbolicLink(atPath: folder + "/keys", withDestinationPath: "link/keys")
    for (first, second) in [
      ("a", "a"), ("a", "./a"), ("a", "b/../a"), (folder + "/real/new", folder + "/link/new"),
      (folder + "/keys", folder + "/real/keys"),
    ] {
      for (one, other) in [("record", "trace"), ("trace", "record")] {
        let refusal = refusal(Self.bot + ["--\(one)", first, "--\(other)", second])
        #expect(refusal?.contains("--record and --trace name one file") == true, "\(first) and \(second)")
      }
      for written in ["record", "trace"] {
        let refusal = refusal(["--headless", "--replay", first, "--\(written)", second])
        #expect(refusal?.contains("--replay") == true && refusal?.contains("name one file") == true)
      }
    }
    #expect(refusal(Self.bot + ["--record", "a", "--trace", "b"]) == nil)
    #expect(refusal(["--headless", "--replay", "a", "--record", "b", "--trace", "c"]) == nil)
  }

  @Test func aNegativeNumberOfStepsIsRefused() {
    #expect(refusal(["--headless", "--bot", "--steps", "-1"]) == "--steps is -1: it must be 0 or more.")
    #expect(refusal(["--headless", "--bot", "--steps", "0"]) == nil)
  }

  @Test func theDemoRefusesThemToo() {
    for (one, other) in [("record", "trace"), ("input", "trace"), ("trace", "record")] {
      do {
        _ = try Demo.parse(["--\(one)", "a", "--\(other)", "./a"])
        Issue.record("--\(one) and --\(other) were taken")
      } catch {
        #expect(Demo.message(for: error).contains("name one file, "))
      }
    }
  }

  /// What the program says about a recording, and how it ends.
  func replay(_ text: String) throws -> (status: Int32, errors: String) {
    let file = FileManager.default.temporaryDirectory.appending(path: "raiders-\(UUID().uuidString)")
    try text.write(to: file, atomically: false, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    let (process, output, errors) = (Process(), Pipe(), Pipe())
    #if canImport(Darwin)
      // The tests are within a bundle, beside which the programs are.
      let folder = Bundle(for: Game.self).bundleURL.deletingLastPathComponent()
    #else
      let folder = Bundle.main.executableURL!.deletingLastPathComponent()
    #endif
    process.executableURL = folder.appending(path: "eventcore-game")
    process.arguments = ["--headless", "--replay", file.path]
    (process.standardOutput, process.standardError) = (output, errors)
    try process.run()
    let said = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit)
    return (process.terminationStatus, String(decoding: said, as: UTF8.self))
  }

  /// Has the name of the game's own in files.
  enum Another { struct Input: RecordableEvent { let key: String } }

  /// A recording of a game that ends at once, perhaps with a key that the game does not know.
  func recording(signal: Int32, key: String? = nil) throws -> String {
    let file = FileManager.default.temporaryDirectory.appending(path: "raiders-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    let game = Game()
    let types: [any RecordableEvent.Type] = [Beginning.self, Another.Input.self, Ending.self]
    let recorder = try EventRecorder(on: game.pump, of: types, to: file, as: .jsonLines)
    game.begin(seed: 5)
    if let key {
      game.pump.addEventCallback { (_: Another.Input) in }
      Another.Input(key: key).queue(on: game.world)
      game.step()
    }
    game.end(signal: signal)
    game.step()
    _ = try recorder.finish()
    return try String(contentsOf: file, encoding: .utf8)
  }

  @Test(arguments: [(15, 143), (Int32.max, 255), (Int32.min, 128), (0, 0)] as [(Int32, Int32)])
  func aSignalInARecordingEndsTheGameWhateverItsNumber(signal: Int32, status: Int32) throws {
    let end = try replay(recording(signal: signal))
    #expect(end.status == status)
    #expect(end.errors == "")
  }

  @Test func aRecordingThatIsDamagedIsPlayedToThereAndSaysSo() throws {
    for text in [String(try recording(signal: 0).dropLast(8)), try recording(signal: 0, key: "jump")] {
      let end = try replay(text)
      #expect(end.status == 0)
      #expect(end.errors.hasPrefix("replay: "))
      #expect(end.errors.split(separator: "\n").count == 1)
    }
  }
}
