// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the module EventCoreRecording and its article, compiled as a user would.

import EventCore
import EventCoreRecording
import Foundation
import Testing

@Suite("The examples of the article on recording")
struct RecordingExamples {
  struct Input: RecordableEvent {
    var key: UInt16
    var isDown: Bool
  }

  struct Resize: RecordableEvent {
    var width: Int
  }

  final class Game {
    private(set) var keys = 0
    var isRunning: Bool { keys < 2 }
    let elapsed = Duration.seconds(1)

    func apply(_ input: Input) { keys += 1 }
  }

  private func withFile(_ body: (URL) async throws -> Void) async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("eventcore-\(UUID()).recording")
    defer { try? FileManager.default.removeItem(at: file) }
    try await body(file)
  }

  @Test func overview() async throws {
    try await withFile { file in
      let world = EventCentral()

      let recorder = try EventRecorder(world, of: [Input.self], to: file)
      Input(key: 32, isDown: true).queue(on: world)
      try await recorder.finish()

      try await EventRecording(contentsOf: file, of: [Input.self]).replay(on: world)

      #expect(recorder.counts.recorded == 1)
    }
  }

  @Test func article() async throws {
    try await withFile { file in
      let world = EventCentral()
      func play() {
        Input(key: 1, isDown: true).queue(on: world)
        Resize(width: 80).stack(priority: .high, on: world)
      }

      let recorder = try EventRecorder(world, of: [Input.self, Resize.self], to: file)
      play()
      try await recorder.finish()

      do {
        let recording = try EventRecording(contentsOf: file, of: [Input.self, Resize.self])
        try await recording.replay(on: world)                      // with the recorded time in between
        try await recording.replay(on: world, speed: 4)            // four times as fast
        try await recording.replay(on: world, speed: .infinity)    // without waiting

      }

      let recording = try EventRecording(
        contentsOf: file, of: [Input.self], accepting: [.damaged, .unknownTypes, .missingEvents])
      if let damage = recording.damage { print(damage) }
      #expect(recording.unknownTypes == ["Resize": 1])
    }
  }

  /// A loop whose clock moves once a step.
  final class Session {
    let clock = ManualClock()
    let world: EventCentral
    let pump: EventPump
    private(set) var step = 0
    private(set) var handled: [Int] = []

    init() {
      world = EventCentral(clock: clock)
      pump = EventPump(on: world)
      pump.addEventCallback { [unowned self] (input: Input) in handled.append(Int(input.key) * 100 + step) }
    }

    func play(_ press: () throws -> Void) throws {
      for _ in 1...5 {
        step += 1
        try press()
        pump.run()
        clock.advance(by: .milliseconds(20))
      }
    }
  }

  @Test("a player that advances to the time of each step replays a loop step by step") func steps() async throws {
    try await withFile { file in
      let session = Session()
      let recorder = try EventRecorder(on: session.pump, of: [Input.self], to: file)
      try session.play {
        if session.step % 2 == 1 { Input(key: UInt16(session.step), isDown: true).queue(on: session.world) }
      }
      try await recorder.finish()
      #expect(session.handled == [101, 303, 505])

      let recording = try EventRecording(contentsOf: file, of: [Input.self])
      let replay = Session()
      var replayer = recording.player(on: replay.world)
      try replay.play { try replayer.advance(to: replay.world.now) }
      #expect(replay.handled == session.handled)

      let steps = 5
      let clock = ManualClock()
      let world = EventCentral(clock: clock)
      let pump = EventPump(on: world)
      var player = recording.player(on: world)
      for _ in 1...steps {
        try player.advance(to: world.now)
        pump.run()
        clock.advance(by: .milliseconds(20))
      }
      #expect(player.nextTime == nil)
    }
  }

  @Test func frames() async throws {
    try await withFile { file in
      let (world, game) = (EventCentral(), Game())
      let start = DispatchTime.now()

      let pump = EventPump(on: world)
      pump.addEventCallback { (input: Input) in game.apply(input) }
      let recorder = try EventRecorder(on: pump, of: [Input.self], to: file, as: .jsonLines, from: start)
      for key: UInt16 in 0..<2 { Input(key: key, isDown: true).queue(on: world) }
      while game.isRunning { pump.run() }
      recorder.flush()
      try await recorder.finish()

      let replayed = Game()
      let second = EventPump(on: world)
      second.addEventCallback { (input: Input) in replayed.apply(input) }
      var player = try EventRecording(contentsOf: file, of: [Input.self]).player(on: world)
      while replayed.isRunning {
        try player.advance(to: .seconds(600))
        second.run()
      }
      #expect(player.nextTime == nil && player.position == 2)
    }
  }
}
