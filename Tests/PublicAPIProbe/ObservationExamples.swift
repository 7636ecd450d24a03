// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Testing

/// The examples of the article *What happens inside*, and of the symbols that it is about.
@Suite("The examples about looking inside")
struct ObservationExamples {
  struct Hit: Eventable {}

  @Test func article() throws {
    let world = EventCentral()
    let pump = EventPump(on: world)
    pump.addEventCallback { (_: Hit) in }
    func play() {
      Hit().queue(on: world)
      pump.run()
    }

    let observation = world.observe()
    play()
    print(world.statistics)
    observation.end()

    let watch = world.watch(slowerThan: .milliseconds(5)) { slow in
      print("\(slow.type) took \(slow.duration) at \(slow.receiver), and \(slow.waiting) events wait")
    }
    play()
    watch.end()

    print(world.flowGraph.mermaid)
    #expect(world.flowGraph.dispatches.map(\.count) == [2])

    let path = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).json").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let tracing = world.startTracing()
    play()
    let summary = try tracing.finish(writingTo: path)
    #expect(summary.handlings == 1 && summary.dispatches == 1)

    let data = try JSONEncoder().encode(world.statistics)
    #expect(try JSONDecoder().decode(EventStatistics.self, from: data) == world.statistics)
    pump.cancel()
    pump.run()
  }

  @Test func histogram() {
    var frames = EventHistogram()
    frames.record(.milliseconds(16))
    print(frames.value(atPercentile: 99))
    #expect(frames.count == 1 && frames.mean == .milliseconds(16))
  }
}
