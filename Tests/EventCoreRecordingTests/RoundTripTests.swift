// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Testing

@testable import EventCoreRecording

@Suite("Recording and replaying: what comes back")
struct RoundTripTests {
  /// What `Codable` allows.
  struct Everything: RecordableEvent, Equatable {
    enum Shape: Codable, Equatable { case point, circle(radius: Double), line(Int, to: [Int]) }
    struct Nested: Codable, Equatable { var names: [String: Shape], inner: [[UInt8]?] }

    var numbers: [Double] = [0.1, -0, .infinity, -.infinity, .leastNonzeroMagnitude, 1e300]
    var single: Float = 0.1
    var large = UInt64.max
    var small = Int64.min
    var missing: Int?
    var there: Int?? = .some(3)
    var nested = Nested(names: ["a": .point, "b\n\"": .circle(radius: 2), "": .line(1, to: [2, 3])], inner: [nil, [0, 255]])
    var date = Date(timeIntervalSince1970: 1_700_000_000.123)
    var id = UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F")
    var data = Data([0, 127, 128, 255])
  }

  struct Input: RecordableEvent {
    var key: UInt16
    var isDown: Bool
  }

  /// What the table of the article *Record and replay* says of its first event, with a time of 13 digits.
  @Test("an event of 24 bytes in JSON takes 32 in the binary format, and 128 as a line", arguments: cores)
  func sizes(core: EventCentral.Core) async throws {
    for (format, expected) in [(EventRecording.Format.binary, 32), (.jsonLines, 128)] {
      func size(_ count: Int) async throws -> Int {
        try await withFile { file in
          let central = EventCentral(core: core, clock: ManualClock())
          let recorder = try EventRecorder(central, of: [Input.self], to: file, as: format)
          for _ in 0..<count { Input(key: 32, isDown: true).queue(on: central) }
          _ = try await recorder.finish()
          return try Data(contentsOf: file).count
        }
      }
      let difference = try await size(101) - size(1)
      #expect(difference / 100 == expected)
    }
  }

  struct Tick: RecordableEvent {
    var number: Int
  }

  class Animal: Codable, @unchecked Sendable {
    let name: String
    init(name: String) { self.name = name }
  }

  final class Dog: Animal, RecordableEvent, @unchecked Sendable {
    let age: Int
    private enum CodingKeys: CodingKey { case age }

    init(name: String, age: Int) {
      self.age = age
      super.init(name: name)
    }

    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      age = try container.decode(Int.self, forKey: .age)
      try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(age, forKey: .age)
      try super.encode(to: container.superEncoder())
    }
  }

  @Test("Priority, method, time and order come back from every lane", arguments: cores, formats)
  func everyLane(core: EventCentral.Core, format: EventRecording.Format) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let begin = DispatchTime.now()
      let recorder = try EventRecorder(central, of: [Mark.self], to: file, as: format)
      for (number, lane) in (lanes + lanes.reversed()).enumerated() {
        dispatch(Mark(number), lane.0, lane.1, on: central)
      }
      let end = DispatchTime.now()
      #expect(try recorder.finish() == recorder.counts)
      #expect(recorder.counts.recorded == 20)
      let recording = try EventRecording(contentsOf: file, of: [Mark.self])
      #expect(recording.count == 20)
      #expect(recording.damage == nil)
      let times = recording.entries.map { DispatchTime(uptimeNanoseconds: $0.record.time) }
      #expect(begin <= recording.start && recording.start <= times[0] && times[19] <= end)
      #expect(
        try marks(of: recording, core: core)
          == (lanes + lanes.reversed()).enumerated().map {
            Received(number: $0, priority: $1.1, method: $1.0)
          })
    }
  }

  @Test("Whatever is Codable comes back", arguments: cores, formats)
  func codable(core: EventCentral.Core, format: EventRecording.Format) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Everything.self, Dog.self, Note.self], to: file, as: format)
      Everything().queue(on: central)
      Dog(name: "Rex", age: 3).queue(on: central)
      Note(text: "}\n,\"event\":").queue(on: central)
      try recorder.finish()

      let recording = try EventRecording(contentsOf: file, of: [Note.self, Dog.self, Everything.self])
      let log = Log<String>()
      let pump = EventPump(on: central)
      pump.addEventCallback { (event: Everything) in log.append("\(event == Everything())") }
      pump.addEventCallback { (dog: Dog) in log.append("\(dog.name) \(dog.age)") }
      pump.addEventCallback { (note: Note) in log.append(note.text) }
      var player = recording.player(on: central)
      #expect(try player.advance(to: .distantFuture) == 3)
      pump.run()
      #expect(log.entries == ["true", "Rex 3", "}\n,\"event\":"])
    }
  }

  @Test("D4: a long recording comes back, each event once", arguments: cores)
  func many(core: EventCentral.Core) async throws {
    let count = shortened(50_000)
    try await withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Tick.self], to: file)
      (0..<count).lazy.map { Tick(number: $0) }.queue(on: central)
      #expect(try await recorder.finish().recorded == count)
      let pump = EventPump(on: central)
      var seen = 0
      pump.addEventCallback { (tick: Tick) in seen += tick.number == seen ? 1 : count }
      var player = try EventRecording(contentsOf: file, of: [Tick.self]).player(on: central)
      while try player.step() {
        if player.position % 1000 == 0 { pump.run() }
      }
      #expect(seen == count)
    }
  }

  @Test("A recorder gets what is dispatched between its making and its end, and nothing else (D4)", arguments: cores)
  func between(core: EventCentral.Core) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      Mark(0).queue(on: central)
      let recorder = try EventRecorder(central, of: [Mark.self], to: file)
      Mark(1).queue(on: central)
      #expect(Note(text: "not recorded").queue(on: central) == 0)
      try recorder.finish()
      #expect(Mark(2).queue(on: central) == 0)
      #expect(try marks(of: EventRecording(contentsOf: file, of: [Mark.self])).map(\.number) == [1])
    }
  }

  @Test("Types are found by their names, whatever their order")
  func names() throws {
    #expect(Mark.recordingName == "Mark")
    try withFile { file in
      let central = EventCentral()
      let recorder = try EventRecorder(central, of: [Note.self, Mark.self], to: file)
      Mark(5).queue(on: central)
      Note(text: "six").queue(on: central)
      try recorder.finish()
      let error = #expect(throws: EventRecordingError.self) { try EventRecording(contentsOf: file, of: [Mark.self]) }
      #expect(error?.reason == .unknownTypes)
      #expect(error?.description.contains(#"1 of a note, "event":"#) == true)
      let recording = try EventRecording(contentsOf: file, of: [Mark.self], accepting: [.unknownTypes])
      #expect(recording.unknownTypes == [Note.recordingName: 1])
      #expect(try marks(of: recording).map(\.number) == [5])
    }
  }

  @Test("No types, and two of one name, trap with a sentence (D12)")
  func wrongTypes() async {
    struct Mark: RecordableEvent {}
    let none = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = try EventRecorder(EventCentral(), of: [], to: URL(fileURLWithPath: "/dev/null"))
    }
    expectMessage(none, "pass at least one")
    let doubled = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      struct Mark: RecordableEvent {}
      _ = try EventRecording(Data(), of: [EventCoreRecordingTests.Mark.self, Mark.self])
    }
    expectMessage(doubled, #"are all called "Mark""#)
    // Their full names, since those without are the same.
    expectMessage(doubled, #"["EventCoreRecordingTests.Mark", "EventCoreRecordingTests.RoundTripTests."#)
  }

  @Test("What one process has recorded another replays, also if it was killed", arguments: formats)
  func processes(format: EventRecording.Format) async throws {
    try await withFile { file in
      let (path, isBinary) = (file.path, format == .binary)
      await #expect(processExitsWith: .success) { [path = path as String, isBinary = isBinary as Bool] in
        let recorder = try EventRecorder(
          of: [Mark.self], to: URL(fileURLWithPath: path), as: isBinary ? .binary : .jsonLines)
        for number in 0..<100 { Mark(number).stack() }
        try await recorder.finish()
      }
      #expect(try marks(of: EventRecording(contentsOf: file, of: [Mark.self])).map(\.number) == Array(0..<100))

      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, isBinary = isBinary as Bool] in
        let recorder = try EventRecorder(
          of: [Mark.self], to: URL(fileURLWithPath: path), as: isBinary ? .binary : .jsonLines)
        for number in 0..<100 { Mark(number).queue() }
        while recorder.counts.recorded < 100 { await Task.yield() }
        recorder.flush()
        kill(getpid(), SIGKILL)
      }
      let recording = try EventRecording(contentsOf: file, of: [Mark.self], accepting: [.damaged])
      #expect(recording.damage?.recordNumber == 101)
      #expect(try marks(of: recording).map(\.number) == Array(0..<100))
    }
  }
}
