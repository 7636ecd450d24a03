// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Testing

@testable import EventCoreRecording

@Suite("Recording: how it ends, and what can go wrong")
struct EndingTests {
  @Test("An event that cannot be encoded is counted, told, and noted in its place", arguments: cores, formats)
  func unencodable(core: EventCentral.Core, format: EventRecording.Format) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Mark.self], to: file, as: format)
      for number in 0..<10 { Mark(number, fails: number % 5 == 2).queue(on: central) }
      for _ in 0..<2 {
        let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
        #expect(error?.reason == .incomplete)
        #expect(error?.description.contains("2 could not be encoded") == true)
        #expect(error?.description.contains("Mark: Refusal()") == true)
      }
      #expect((recorder.counts.recorded, recorder.counts.unencodable) == (8, 2))
      let error = #expect(throws: EventRecordingError.self) { try EventRecording(contentsOf: file, of: [Mark.self]) }
      #expect(error?.reason == .missingEvents)
      let recording = try EventRecording(contentsOf: file, of: [Mark.self], accepting: [.missingEvents])
      #expect((recording.missingCount, recording.count) == (2, 8))
      #expect(recording.entries.map(\.number) == [1, 2, 4, 5, 6, 7, 9, 10])
      #expect(try marks(of: recording).map(\.number) == [0, 1, 3, 4, 5, 6, 8, 9])
    }
  }

  @Test("D12: a pipe that nobody reads ends the writing, and not the process", arguments: cores)
  func brokenPipe(core: EventCentral.Core) throws {
    try withFile { file in
      #expect(mkfifo(file.path, 0o600) == 0)
      let reader: Int32 = open(file.path, O_RDONLY | O_NONBLOCK)
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Mark.self], to: file)
      close(reader)
      for number in 0..<10 { Mark(number).queue(on: central) }
      let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
      #expect(error?.description.contains("10 could not be written") == true, "\(error?.description ?? "")")
    }
  }

  @Test("D12: an event that could not be encoded, and of which nothing could be written either, counts as unwritten")
  func brokenPipeOfUnencodable() throws {
    try withFile { file in
      #expect(mkfifo(file.path, 0o600) == 0)
      let reader: Int32 = open(file.path, O_RDONLY | O_NONBLOCK)
      let central = EventCentral()
      let recorder = try EventRecorder(central, of: [Mark.self], to: file)
      close(reader)
      Mark(0, fails: true).queue(on: central)
      let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
      #expect((recorder.counts.unencodable, recorder.counts.unwritten) == (0, 1))
      #expect(error?.description.contains("1 could not be written") == true, "\(error?.description ?? "")")
      #expect(error?.description.contains("Of these some could not be encoded") == true, "\(error?.description ?? "")")
    }
  }

  #if os(Linux)
    @Test("A disk that is full ends the writing; every event is counted, and the end throws", arguments: cores)
    func fullDisk(core: EventCentral.Core) throws {
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Mark.self], to: URL(fileURLWithPath: "/dev/full"))
      for number in 0..<1000 { Mark(number).queue(on: central) }
      let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
      #expect(error?.reason == .incomplete)
      #expect(error?.description.contains("1000 could not be written") == true)
      #expect((recorder.counts.recorded, recorder.counts.unwritten) == (0, 1000))
    }

    @Test("What a file took before the disk was full can be read", arguments: cores, formats)
    func fullLater(core: EventCentral.Core, format: EventRecording.Format) async throws {
      await withFile { file in
        let (path, isBinary, isLocking) = (file.path, format == .binary, core == .locking)
        // A limit of the process stands for the disk.
        await #expect(processExitsWith: .success) { 
          [path = path as String, isBinary = isBinary as Bool, isLocking = isLocking as Bool] in
          signal(SIGXFSZ, SIG_IGN)
          var limit = rlimit(rlim_cur: 100_000, rlim_max: 100_000)
          setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
          let central = EventCentral(core: isLocking ? .locking : .default)
          let recorder = try EventRecorder(
            central, of: [Mark.self], to: URL(fileURLWithPath: path), as: isBinary ? .binary : .jsonLines)
          for number in 0..<10_000 { Mark(number).queue(on: central) }
          _ = try? await recorder.finish()
          let counts = recorder.counts
          try #require(counts.recorded + counts.unwritten == 10_000 && counts.unwritten > 0)
          let recording = try EventRecording(
            contentsOf: URL(fileURLWithPath: path), of: [Mark.self], accepting: [.damaged])
          try #require(recording.damage != nil && recording.count >= counts.recorded)
          try #require(marks(of: recording).map(\.number) == Array(0..<recording.count))
        }
      }
    }
  #endif

  /// A mark that can be held up while it is encoded.
  private struct Slow: RecordableEvent {
    var mark: Mark
    var entered: Gate?
    var leave: Gate?

    init(_ number: Int, entered: Gate? = nil, leave: Gate? = nil) {
      (mark, self.entered, self.leave) = (Mark(number), entered, leave)
    }
    init(from decoder: any Decoder) throws { mark = try Mark(from: decoder) }

    func encode(to encoder: any Encoder) throws {
      entered?.open()
      leave?.pass()
      try mark.encode(to: encoder)
    }
  }

  @Test("D10: a recorder that is finished in a cancelled task records what waits all the same", arguments: cores, formats)
  func cancelled(core: EventCentral.Core, format: EventRecording.Format) async throws {
    try await withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Slow.self], to: file, as: format)
      let (entered, leave) = (Gate(), Gate())
      Slow(0, entered: entered, leave: leave).queue(on: central)
      var sent = 1
      while sent < 100 {
        Slow(sent).queue(on: central)
        sent += 1
      }
      entered.pass()
      let end = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await recorder.finish()
      }
      // It has begun to end when it takes no more.
      #expect(
        await yieldUntil {
          guard Slow(sent).queue(on: central) == 1 else { return true }
          sent += 1
          return false
        })
      leave.open()
      #expect(try await end.value == recorder.counts)
      #expect((recorder.counts.recorded, recorder.counts.unwritten) == (sent, 0))
      #expect(try EventRecording(contentsOf: file, of: [Slow.self]).count == sent)
    }
  }

  @Test("D12: an event that comes after the end is told")
  func late() throws {
    try withFile { file in
      let writer = try RecordingWriter(file.path, .binary, start: 1, types: ["Mark"])
      #expect(try writer.end(left: 0).unwritten == 0)
      writer.record(Mark(1), Record(time: 2, type: 0, lane: 0))
      let error = #expect(throws: EventRecordingError.self) { try writer.end(left: 0) }
      #expect(error?.description.contains("1 came after its end") == true)
    }
  }

  @Test("A file that cannot be made, and one that is not there, are errors with the path")
  func noFile() {
    let file = URL(fileURLWithPath: "/no such folder/file")
    let writing = #expect(throws: EventRecordingError.self) { try EventRecorder(of: [Mark.self], to: file) }
    let reading = #expect(throws: EventRecordingError.self) { try EventRecording(contentsOf: file, of: [Mark.self]) }
    for error in [writing, reading] {
      #expect(error?.reason == .file)
      #expect(error?.description.contains("/no such folder/file") == true)
    }
  }

  @Test("D12: a file has one recorder at a time, and a second one is refused", arguments: cores, formats)
  func second(core: EventCentral.Core, format: EventRecording.Format) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      func record() throws -> EventRecorder { try EventRecorder(central, of: [Mark.self], to: file, as: format) }
      let first = try record()
      for number in 0..<10 { Mark(number).queue(on: central) }
      let error = #expect(throws: EventRecordingError.self) { try record() }
      #expect(error?.reason == .file)
      #expect(error?.description.contains("another recorder is writing \(file.path)") == true)
      Mark(10).queue(on: central)
      _ = try finish(first)
      let recording = try EventRecording(contentsOf: file, of: [Mark.self])
      #expect(try marks(of: recording).map(\.number) == Array(0...10))
      // The end makes the file free, although the recorder is still there, and so does the last reference.
      var next: EventRecorder? = try record()
      withExtendedLifetime((first, next)) {}
      next = nil
      _ = try finish(record())
      #expect(try EventRecording(contentsOf: file, of: [Mark.self]).count == 0)
    }
  }

  @Test("D9: a recorder that goes without its end leaves a file that reads as cut", arguments: cores, formats)
  func released(core: EventCentral.Core, format: EventRecording.Format) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      var recorder: EventRecorder? = try EventRecorder(central, of: [Mark.self], to: file, as: format)
      for number in 0..<100 { Mark(number).queue(on: central) }
      #expect(waitUntil { recorder!.counts.recorded == 100 })
      recorder = nil
      #expect(waitUntil { Mark(100).queue(on: central) == 0 })
      let error = #expect(throws: EventRecordingError.self) { try EventRecording(contentsOf: file, of: [Mark.self]) }
      #expect(error?.reason == .damaged)
      #expect(error?.recordNumber == 101)
      let size = try Data(contentsOf: file).count
      #expect(error?.byteOffset == size)
      let recording = try EventRecording(contentsOf: file, of: [Mark.self], accepting: [.damaged])
      #expect(try marks(of: recording).map(\.number) == Array(0..<100))
    }
  }

  @Test("D10: what waits in a pump at the end is counted, told, and noted", arguments: cores, formats)
  func waiting(core: EventCentral.Core, format: EventRecording.Format) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      let recorder = try EventRecorder(on: pump, of: [Mark.self], to: file, as: format)
      for number in 0..<10 { Mark(number).queue(on: central) }
      pump.run(limit: 7)
      let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
      #expect(error?.description.contains("3 waited in the pump") == true)
      #expect((recorder.counts.recorded, recorder.counts.left) == (7, 3))
      #expect(pump.run().handled == 3)
      #expect(recorder.counts.recorded == 7)
      let recording = try EventRecording(contentsOf: file, of: [Mark.self], accepting: [.missingEvents])
      #expect((recording.count, recording.missingCount) == (7, 3))
    }
  }

  @Test("D4: what a full pump refuses or drops is counted, told, and noted", arguments: cores, formats)
  func fullPump(core: EventCentral.Core, format: EventRecording.Format) throws {
    for policy in [EventOverflowPolicy.refuse, .dropNewest, .dropOldest] {
      try withFile { file in
        let central = EventCentral(core: core)
        let pump = EventPump(on: central, mailbox: .bounded(4, whenFull: policy))
        for number in 0..<6 { Mark(number).queue(on: central) }
        // What was lost before the recorder was made is nothing of its own, and neither is what was handled after that.
        pump.addEventCallback { (_: Mark) in }
        for number in 0..<6 { Mark(number).queue(on: central) }
        let recorder = try EventRecorder(on: pump, of: [Mark.self], to: file, as: format)
        pump.run()
        let before = recorder.counts.recorded
        for number in 0..<10 { Mark(number).queue(on: central) }
        pump.run()
        let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
        #expect(error?.description.contains("6 waited in the pump, or were lost") == true)
        #expect((recorder.counts.recorded - before, recorder.counts.left) == (4, 6))
        #expect(try EventRecording(contentsOf: file, of: [Mark.self], accepting: [.missingEvents]).missingCount == 6)
      }
    }
  }

  @Test("D10: what a cancelled pump frees is counted, told, and noted", arguments: cores)
  func cancelledPump(core: EventCentral.Core) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      let recorder = try EventRecorder(on: pump, of: [Mark.self], to: file)
      for number in 0..<3 { Mark(number).queue(on: central) }
      pump.cancel()
      pump.run()
      #expect(throws: EventRecordingError.self) { try finish(recorder) }
      #expect((recorder.counts.recorded, recorder.counts.left) == (0, 3))
    }
  }

  @Test("D12: the end of a recorder whose pump has ended throws, since nobody knows what came after", arguments: cores)
  func endedPump(core: EventCentral.Core) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      let recorder = try EventRecorder(on: pump, of: [Mark.self], to: file)
      Mark(0).queue(on: central)
      pump.run()
      pump.cancel()
      Mark(1).queue(on: central)
      let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
      #expect(error?.reason == .incomplete && error?.description.contains("Its pump had ended") == true)
      #expect((recorder.counts.recorded, recorder.counts.left) == (1, 0))
    }
  }

  @Test("D12: the end of a recorder inside a callback of its pump traps")
  func insidePump() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let central = EventCentral()
      let pump = EventPump(on: central)
      let late = Late()
      pump.addEventCallback { (_: Mark) in _ = try? late.recorder.map { try finish($0) } }
      late.recorder = try EventRecorder(on: pump, of: [Mark.self], to: URL(fileURLWithPath: "/dev/null"))
      Mark(0).queue(on: central)
      pump.run()
    }
    expectMessage(result, "was called inside a callback of that pump, whose event the recorder may not have yet")
  }

  @Test("an error of an encoder is told by its place and its reason, without the event", arguments: cores)
  func briefErrors(core: EventCentral.Core) throws {
    struct Limit: RecordableEvent {
      var deep = Deep()
      struct Deep: Codable {
        func encode(to encoder: any Encoder) throws {
          throw EncodingError.invalidValue(
            self, EncodingError.Context(codingPath: encoder.codingPath, debugDescription: "It is too deep."))
        }
      }
    }
    try withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Limit.self], to: file)
      Limit().queue(on: central)
      let error = #expect(throws: EventRecordingError.self) { try finish(recorder) }
      #expect(error?.description.contains("(The first: Limit: deep: It is too deep.)") == true, "\(error?.description ?? "")")
    }
  }

  @Test("D9: a recorder in a pump ends with its last reference, and its writer with it", arguments: cores)
  func releasedInPump(core: EventCentral.Core) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      weak var writer: RecordingWriter?
      do {
        let recorder = try EventRecorder(on: pump, of: [Mark.self], to: file)
        writer = recorder.writer
        Mark(1).queue(on: central)
        pump.run()
        #expect(writer != nil)
        _ = recorder
      }
      #expect(Mark(2).queue(on: central) == 0)
      pump.run()
      #expect(writer == nil)
    }
  }
}

/// Holds the recorder that a callback ends which was registered before.
private final class Late {
  var recorder: EventRecorder?
}
