// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Testing

@Suite("Files of traces")
struct TraceFileTests {
  struct Step: Eventable { var number = 0 }

  @Test("D12: a file that cannot be written is an error that says why, also a pipe that nobody reads")
  func files() throws {
    let central = EventCentral()
    let error = #expect(throws: EventTracing.FileError.self) {
      try central.startTracing().finish(writingTo: "/no/such/folder/trace")
    }
    #expect(error?.description == "The trace could not be written to /no/such/folder/trace: No such file or directory.")
    let path = "/tmp/trace-\(UInt64.random(in: 0 ... .max))"
    #expect(mkfifo(path, 0o600) == 0)
    defer { unlink(path) }
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    let tracing = central.startTracing()
    // More than the pipe takes.
    for number in 0..<2_000 { Step(number: number).queue(on: central) }
    pump.run()
    onThreads(2) { index in
      if index == 0 {
        let reader = open(path, O_RDONLY)
        var byte: UInt8 = 0
        #expect(read(reader, &byte, 1) == 1)
        close(reader)
      } else {
        let error = #expect(throws: EventTracing.FileError.self) { try tracing.finish(writingTo: path) }
        #expect(error?.code == EPIPE)
      }
    }
  }

  @Test("a thread that dispatches on two traced centrals in turn has one track in each, and loses nothing", arguments: cores)
  func twoTraces(core: EventCentral.Core) {
    let centrals = [EventCentral(core: core), EventCentral(core: core)]
    let pumps = centrals.map { EventPump(on: $0) }
    for pump in pumps { pump.addEventCallback { (_: Step) in } }
    let count = 1_000
    // One has room for all, and the other is full before.
    let traces = zip(centrals, [10_000, 500]).map { $0.startTracing(limit: $1) }
    for number in 0..<count {
      for central in centrals { Step(number: number).queue(on: central) }
    }
    for pump in pumps { #expect(pump.run().handled == count) }
    let ends = traces.map { trace in
      var text = ""
      return (trace.finish { text += $0 }, tracks: text.ranges(of: "thread_name").count)
    }
    #expect(ends[0].0.lost == 0)
    #expect((ends[0].0.dispatches, ends[0].0.handlings) == (count, count))
    #expect(ends[1].0.dispatches + ends[1].0.handlings == 500)
    #expect(ends[1].0.lost == 2 * count - 500)
    #expect(ends.map(\.tracks) == [1, 1])
    for pump in pumps { pump.cancel() }
  }
}
