// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Testing

@testable import EventCoreRecording

@Suite("Recording and replaying: the order")
struct OrderTests {
  @Test("The order of one thread comes back, whatever the lanes", arguments: cores, formats)
  func oneThread(core: EventCentral.Core, format: EventRecording.Format) throws {
    var random = SeededRandom(seed: announcedSeed("oneThread"))
    try withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Mark.self], to: file, as: format)
      var sent: [Received] = []
      for number in 0..<1000 {
        let (method, priority) = lanes.randomElement(using: &random)!
        sent.append(Received(number: number, priority: priority, method: method))
        dispatch(Mark(number), method, priority, on: central)
      }
      try recorder.finish()
      let recording = try EventRecording(contentsOf: file, of: [Mark.self])
      let received = try marks(of: recording, core: core)
      for (method, priority) in lanes {
        func lane(_ events: [Received]) -> [Received] {
          events.filter { $0.method == method && $0.priority == priority }
        }
        #expect(lane(received) == lane(sent))
      }
      // A clock that is too coarse to tell two dispatches apart orders those of different lanes by D1.
      let times = recording.entries.map(\.record.time)
      if Set(times).count == times.count { #expect(received == sent) }
    }
  }

  @Test("D2, D3: batches come back in their order", arguments: cores, EventDispatchMethod.allCases)
  func batches(core: EventCentral.Core, method: EventDispatchMethod) throws {
    try withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Mark.self], to: file)
      for begin in stride(from: 0, to: 1000, by: 100) {
        let batch = (begin..<begin + 100).map { Mark($0) }
        _ = method == .queue ? batch.queue(on: central) : batch.stack(on: central)
      }
      try recorder.finish()
      let received = try marks(of: EventRecording(contentsOf: file, of: [Mark.self]), core: core)
      #expect(received.map(\.number) == Array(0..<1000))
      #expect(received.allSatisfy { $0.method == method })
    }
  }

  @Test("D2, D4: several threads keep their orders, and nothing is lost or doubled", arguments: cores)
  func threads(core: EventCentral.Core) async throws {
    try await withFile { file in
      let central = EventCentral(core: core)
      let recorder = try EventRecorder(central, of: [Mark.self], to: file)
      await offThePool {
        onThreads(4) { thread in
          for number in 0..<500 {
            let (method, priority) = lanes[(number + thread) % lanes.count]
            dispatch(Mark(number * 4 + thread), method, priority, on: central)
          }
        }
      }
      #expect(try await recorder.finish().recorded == 2000)
      let received = try marks(of: EventRecording(contentsOf: file, of: [Mark.self]), core: core).map(\.number)
      #expect(received.sorted() == Array(0..<2000))
      for thread in 0..<4 {
        let own = received.filter { $0 % 4 == thread }
        #expect(own == own.sorted())
      }
    }
  }

  @Test("Of one time: lanes by D1, queues as taken, stacks in reverse")
  func ties() throws {
    var writer = BinaryFrameWriter(start: 0, types: ["Mark"])
    // As a recorder takes what was dispatched as 10 … 18 by a clock that stands still, the first five as a stack.
    let taken: [(number: Int, method: EventDispatchMethod, priority: EventPriority)] = [
      (18, .stack, .high), (12, .stack, .normal), (11, .stack, .normal), (10, .stack, .normal),
      (13, .queue, .high), (14, .queue, .normal), (15, .queue, .normal),
    ]
    for time: UInt64 in [7, 5] {
      for event in taken {
        writer.add(
          Record(time: time, type: 0, lane: Record.lane(event.method, event.priority)),
          try encodePayload(Mark(Int(time) * 100 + event.number)))
      }
    }
    writer.end(left: 0)
    let recording = try EventRecording(Data(writer.bytes), of: [Mark.self])
    #expect(
      try marks(of: recording).map(\.number)
        == [5, 7].flatMap { time in [18, 10, 11, 12, 13, 14, 15].map { time * 100 + $0 } })
  }

  @Test("In a pump a recorder takes in one order with the handlers, and only in its runs", arguments: cores)
  func pump(core: EventCentral.Core) throws {
    var random = SeededRandom(seed: announcedSeed("pump"))
    try withFile { file in
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      var handled: [Int] = []
      pump.addEventCallback { (mark: Mark) in handled.append(mark.number) }
      let recorder = try EventRecorder(on: pump, of: [Mark.self], to: file)
      for frame in 0..<20 {
        for number in 0..<20 {
          let (method, priority) = lanes.randomElement(using: &random)!
          dispatch(Mark(frame * 20 + number), method, priority, on: central)
        }
        #expect(recorder.counts.recorded == frame * 20)
        #expect(pump.run().handled == 20)
      }
      pump.queueEvent(Mark(400))
      pump.run()
      #expect(recorder.counts.recorded == 401)
      // Before the end as well, since nothing waits.
      let early = try RecordingContents([UInt8](Data(contentsOf: file)))
      #expect(early.entries.count == 401)
      try recorder.finish()
      let recording = try EventRecording(contentsOf: file, of: [Mark.self])
      let recorded = try RecordingContents([UInt8](Data(contentsOf: file))).entries.map { entry in
        try decodePayload(Mark.self, recording.bytes[entry.payload]).number
      }
      #expect(recorded == handled)
      #expect(try marks(of: recording).map(\.number).sorted() == Array(0...400))
    }
  }

  @Test("In a pump a recorder writes when nothing is left, also if other events come last", arguments: cores)
  func othersLast(core: EventCentral.Core) throws {
    struct Tick: Eventable {}
    try withFile { file in
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      pump.addEventCallback { (_: Tick) in }
      let recorder = try EventRecorder(on: pump, of: [Mark.self], to: file)
      for number in 1...3 {
        Mark(number).queue(priority: .high, on: central)
        Tick().queue(on: central)
        #expect(pump.run().handled == 2)
        #expect(try RecordingContents([UInt8](Data(contentsOf: file))).entries.count == number)
      }
      try recorder.finish()
      // Its work in the pump goes with it.
      pump.run()
    }
  }

  @Test("Equal events at equal times make equal files", arguments: formats)
  func equalFiles(format: EventRecording.Format) throws {
    let seed = announcedSeed("equalFiles")
    let samples = try (0..<2).map { _ in
      var random = SeededRandom(seed: seed)
      return try Sample(format, records: 100, random: &random).bytes
    }
    #expect(samples[0] == samples[1])
  }
}
