// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Foundation
import Testing

@testable import EventCore

@Suite("Traces for Perfetto")
struct TracingTests {
  /// What Perfetto reads.
  private struct File: Decodable {
    let traceEvents: [Slice]
    struct Slice: Decodable {
      let ph: String
      let name: String
      let cat: String?
      let tid: Int
      let ts: Double?
      let dur: Double?
      let id: String?
      let bp: String?
      let args: Arguments?
    }
    struct Arguments: Decodable {
      let waited_us: Double?
    }
    func all(_ phase: String, _ category: String? = nil) -> [Slice] {
      traceEvents.filter { $0.ph == phase && (category == nil || $0.cat == category) }
    }
  }

  private func read(_ tracing: EventTracing) throws -> (EventTracing.Summary, File) {
    var text = ""
    let summary = tracing.finish { text += $0 }
    return (summary, try JSONDecoder().decode(File.self, from: Data(text.utf8)))
  }

  @Test("D9: a trace ends if it is released, or cannot be written, and keeps nothing", arguments: cores)
  func discarded(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    func play() {
      Step().queue(on: central)
      pump.run()
    }
    var tracing: EventTracing? = central.startTracing()
    play()
    #expect(throws: EventTracing.FileError.self) { try tracing?.finish(writingTo: "/no such folder/trace.json") }
    #expect(central.basis.instruments.trace == nil)
    tracing = central.startTracing()
    play()
    tracing = nil
    #expect(tracing == nil && central.basis.instruments.trace == nil)
    tracing = central.startTracing()
    play()
    #expect(tracing?.finish { _ in } == .init(dispatches: 1, handlings: 1, lost: 0))
    pump.cancel()
    pump.run()
  }

  @Test("threads that come one after the other have tracks of their own", arguments: cores)
  func oneAfterTheOther(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let tracing = central.startTracing()
    for number in 0..<8 {
      let thread = EventThread(on: central, name: "worker \(number)")
      thread.addEventCallback { (_: Step) in }
      Step().queue(on: central)
      #expect(thread.drain())
      thread.join()
    }
    let (summary, file) = try read(tracing)
    #expect(summary.handlings == 8)
    #expect(Set(file.all("X", "handler").map(\.tid)).count == 8)
  }

  @Test("a slice for each dispatch and handling, on its thread, and an arrow from the one to the other", arguments: cores)
  func whole(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let threads = (0..<2).map { EventThread(on: central, name: "worker \($0)") }
    for thread in threads { thread.addEventCallback { (_: Step) in } }
    let tracing = central.startTracing()
    for number in 0..<1500 { Step(number: number).queue(on: central) }
    for thread in threads { #expect(thread.drain()) }
    let (summary, file) = try read(tracing)
    #expect(summary == .init(dispatches: 1500, handlings: 3000, lost: 0))
    #expect(file.all("X", "dispatch").count == 1500 && file.all("X", "handler").count == 3000)
    let names = file.all("M")
    #expect(names.count == 3 && Set(names.map(\.tid)).count == 3)
    // Each arrow begins at a dispatch, ends at the begin of a handling on another thread, and leads into the future.
    let (starts, ends) = (file.all("s"), file.all("f"))
    #expect(starts.count == 3000 && ends.count == 3000)
    let dispatches = Set(file.all("X", "dispatch").compactMap(\.ts))
    let handlings = Set(file.all("X", "handler").compactMap(\.ts))
    #expect(Set(starts.compactMap(\.id)).count == 3000)
    for (start, end) in zip(starts, ends) {
      #expect(start.id == end.id && start.tid != end.tid && end.bp == "e")
      #expect(try #require(start.ts) <= #require(end.ts))
      #expect(try dispatches.contains(#require(start.ts)) && handlings.contains(#require(end.ts)))
    }
    #expect(try read(tracing).0 == .init())
  }

  @Test("a handler never begins before its dispatch, nor ends before what it dispatches", arguments: cores)
  func causal(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let threads = (0..<2).map { EventThread(on: central, name: "worker \($0)") }
    let (end, done) = (monotonicNanoseconds() + 60_000_000, DispatchSemaphore(value: 0))
    // From thread to thread and back, for so long that the threads do without looks at the clock.
    let hop: @Sendable (Int) -> Void = { number in
      if monotonicNanoseconds() < end { Step(number: number + 1).queue(on: central) } else { done.signal() }
    }
    for (parity, thread) in threads.enumerated() {
      thread.addEventCallback { (step: Step) in if step.number % 2 == parity { hop(step.number) } }
    }
    let tracing = central.startTracing()
    hop(-1)
    done.wait()
    for thread in threads { #expect(thread.drain()) }
    let (summary, file) = try read(tracing)
    #expect(summary.handlings == 2 * summary.dispatches && summary.lost == 0)
    let handlers = file.all("X", "handler")
    for (start, end) in zip(file.all("s"), file.all("f")) {
      #expect(try #require(start.ts) <= #require(end.ts))
    }
    // What a handler dispatches lies within it, and so each of the chain after the one before.
    var slices: [Int: [(begin: Double, end: Double)]] = [:]
    for handler in handlers {
      let begin = try #require(handler.ts)
      slices[handler.tid, default: []].append((begin, end: begin + (try #require(handler.dur)) + 0.0005))
    }
    slices = slices.mapValues { $0.sorted { $0.begin < $1.begin } }
    for dispatch in file.all("X", "dispatch") {
      guard let slices = slices[dispatch.tid] else { continue }
      let ts = try #require(dispatch.ts)
      let index = slices.partitioningIndex { $0.begin > ts }
      #expect(index > 0 && ts <= slices[index - 1].end)
    }
  }

  @Test("waits and handlings of more than four seconds are written as they were", arguments: cores)
  func long(core: EventCentral.Core) throws {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    pump.addEventCallback { (step: Step) in clock.advance(by: .seconds(step.number)) }
    let tracing = central.startTracing()
    for (waited, handled) in [(5, 1), (1, 6), (4, 4), (5, 5)] {
      Step(number: handled).queue(on: central)
      clock.advance(by: .seconds(waited))
      pump.run()
    }
    let (summary, file) = try read(tracing)
    #expect(summary == .init(dispatches: 4, handlings: 4, lost: 0))
    let handlers = file.all("X", "handler")
    #expect(handlers.map { $0.args?.waited_us } == [5_000_000, 1_000_000, 4_000_000, 5_000_000])
    #expect(handlers.map(\.dur) == [1_000_000, 6_000_000, 4_000_000, 5_000_000])
    #expect(zip(file.all("s"), file.all("X", "dispatch")).allSatisfy { $0.ts == $1.ts })
    #expect(zip(file.all("f"), handlers).allSatisfy { $0.ts == $1.ts })
  }

  @Test("sampled: one of so many events, with its handlings and arrows", arguments: cores)
  func sampled(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Step) in }
    let tracing = central.startTracing(.every(100))
    for _ in 0..<1000 { Step().queue(on: central) }
    #expect(thread.drain())
    let (summary, file) = try read(tracing)
    #expect(summary == .init(dispatches: 10, handlings: 10, lost: 0))
    #expect(file.all("s").count == 10)
  }

  @Test("a central samples once for all who look on, as often as the one who wants most", arguments: cores)
  func sampledTogether(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    let tracing = central.startTracing(.every(100))
    let observation = central.observe(times: .every(10))
    for _ in 0..<1_000 { Step().queue(on: central) }
    pump.run()
    #expect(try read(tracing).0 == .init(dispatches: 100, handlings: 100, lost: 0))
    observation.end()
  }

  @Test("what exceeds the limit is lost, and counted", arguments: cores)
  func limit(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    let tracing = central.startTracing(limit: 2048)
    for _ in 0..<2000 { Step().queue(on: central) }
    pump.run()
    let (summary, _) = try read(tracing)
    #expect(summary == .init(dispatches: 2000, handlings: 48, lost: 1952))
    // The next one begins anew.
    let second = central.startTracing()
    Step().queue(on: central)
    pump.run()
    #expect(try read(second).0 == .init(dispatches: 1, handlings: 1, lost: 0))
  }

  @Test("the limit counts what is written, by whichever threads", arguments: cores)
  func limitOfThreads(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    // Two threads, one after the other.
    var tracing = central.startTracing(limit: 1_024)
    for _ in 0..<2 { onThreads(1) { _ in for _ in 0..<400 { Step().queue(on: central) } } }
    #expect(try read(tracing).0 == .init(dispatches: 800, handlings: 0, lost: 0))
    // Many, with one event each.
    tracing = central.startTracing(limit: 4_096)
    for _ in 0..<200 { onThreads(1) { _ in Step().queue(on: central) } }
    #expect(try read(tracing).0 == .init(dispatches: 200, handlings: 0, lost: 0))
    // One has all the room that there is, and no more.
    for limit in [1, 10, 100, 1_000] {
      tracing = central.startTracing(limit: limit)
      for _ in 0..<limit + 5 { Step().queue(on: central) }
      #expect(try read(tracing).0 == .init(dispatches: limit, handlings: 0, lost: 5))
    }
    pump.cancel()
    pump.run()
  }

  @Test("D8: a handler that asks for the time changes nothing", arguments: cores)
  func timed(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step, _: EventPriority, _: DispatchTime) in }
    let tracing = central.startTracing(.every(5))
    for _ in 0..<1000 { Step().queue(on: central) }
    pump.run()
    let (summary, file) = try read(tracing)
    #expect(summary.dispatches == summary.handlings)
    #expect(file.all("s").count == summary.handlings)
    #expect(summary.handlings > 0 && summary.handlings < 1000)
  }

  @Test("a trace that is released, and the end of its central while threads dispatch, are no harm", arguments: cores)
  func released(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Step) in }
    onThreads(2) { index in
      if index == 0 {
        for _ in 0..<100 { _ = central.startTracing(.every(2)) }
      } else {
        for _ in 0..<10_000 { Step().queue(on: central) }
      }
    }
    #expect(thread.drain())
  }

  @Test("a file is written, and replaced; one that cannot be is an error", arguments: cores)
  func file(core: EventCentral.Core) throws {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    let folder = FileManager.default.temporaryDirectory.appending(path: "trace-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "trace.json").path
    for _ in 0..<2 {
      let tracing = central.startTracing()
      Step().queue(on: central)
      pump.run()
      #expect(try tracing.finish(writingTo: path) == .init(dispatches: 1, handlings: 1, lost: 0))
      let file = try JSONDecoder().decode(File.self, from: Data(contentsOf: URL(filePath: path)))
      #expect(file.all("X").count == 2)
    }
    let missing = folder.appending(path: "nowhere/trace.json").path
    #expect(throws: EventTracing.FileError(path: missing, code: ENOENT)) {
      try central.startTracing().finish(writingTo: missing)
    }
  }

  /// Plays a little with everything that a deterministic central runs, and returns what it has traced.
  private func trace(seed: UInt64, core: EventCentral.Core) throws -> (text: String, file: File) {
    let clock = ManualClock()
    let world = EventCentral(deterministic: seed, core: core, clock: clock)
    let threads = (0..<3).map { _ in EventThread(on: world, name: "worker") }
    for (index, thread) in threads.enumerated() {
      thread.addEventCallback { (step: Step) in
        clock.advance(by: .microseconds(index + 1))
        Ping(number: step.number).queue(on: world)
      }
    }
    let pool = EventPool<EventThread>(capacity: 2, balancer: .shared, on: world, name: "pool") { _ in
      let thread = EventThread(on: world)
      thread.addEventCallback { (_: Ping) in clock.advance(by: .nanoseconds(10)) }
      return thread
    }
    Ping.addListener(nil, { _ in clock.advance(by: .nanoseconds(20)) }, executeOn: .listenerThread, on: world)
    let pump = EventPump(on: world)
    pump.addEventCallback { (_: Ping) in }
    let tracing = world.startTracing()
    for number in 0..<5 { Step(number: number).queue(on: world) }
    world.run()
    pump.run()
    var text = ""
    let summary = tracing.finish { text += $0 }
    #expect(summary == .init(dispatches: 5 + 15, handlings: 15 + 3 * 15, lost: 0))
    for thread in threads { thread.cancel() }
    pool.cancel()
    pump.cancel()
    return (text, try JSONDecoder().decode(File.self, from: Data(text.utf8)))
  }

  @Test("a deterministic central: its receivers by name, its clock's times, and the same bytes for the same seed")
  func deterministic() throws {
    var texts: Set<String> = []
    for seed in 1...5 as ClosedRange<UInt64> {
      let (text, file) = try trace(seed: seed, core: .default)
      for core in cores { #expect(try trace(seed: seed, core: core).text == text, "seed \(seed)") }
      texts.insert(text)
      // On another thread, since no thread of the system's is to be seen in it.
      let other = Log<String>()
      onThreads(1) { _ in other.append((try? trace(seed: seed, core: .default).text) ?? "") }
      #expect(other.entries == [text])
      for name in ["outside", "worker", "worker 2", "worker 3", "pool-0", "pool-1", "EventListener", "EventPump"] {
        #expect(text.contains(#""args":{"name":"\#(name)"}"#), "\(name)")
      }
      #expect(Set(file.all("M").map(\.tid)).count == 8)
      // All begins at the time at which the trace did, and an arrow leads from each dispatch: those of the threads are at
      // different times, since each moves the clock.
      #expect(file.all("X", "dispatch").compactMap(\.ts).min() == 0)
      #expect(file.all("s").count == 15 + 3 * 15)
      #expect(Set(file.all("s").map(\.tid)).count == 4)
      #expect(file.all("X", "handler").compactMap(\.dur).reduce(0, +).rounded() >= 30)
    }
    #expect(texts.count > 1)
  }

  @Test("on a clock that stands still an arrow leads from a dispatch that can be told")
  func standingClock() throws {
    let world = EventCentral(deterministic: 1)
    let threads = (0..<2).map { EventThread(on: world, name: "worker \($0)") }
    for thread in threads { thread.addEventCallback { (_: Step) in Ping().queue(on: world) } }
    let pump = EventPump(on: world)
    pump.addEventCallback { (_: Ping) in }
    let tracing = world.startTracing()
    Step().queue(on: world)
    world.run()
    pump.run()
    let (summary, file) = try read(tracing)
    #expect(summary == .init(dispatches: 3, handlings: 4, lost: 0))
    #expect(file.all("s").map(\.name) == ["EventCoreTests.Step", "EventCoreTests.Step"])
    for thread in threads { thread.cancel() }
    pump.cancel()
  }

  @Test("a deterministic central has room for many receivers", arguments: cores)
  func manyReceivers(core: EventCentral.Core) throws {
    let world = EventCentral(deterministic: 1, core: core)
    let pumps = (0..<100).map { _ in EventPump(on: world) }
    for pump in pumps { pump.addEventCallback { (_: Step) in } }
    // The limit is one for all records, whoever's they are.
    let tracing = world.startTracing(limit: 8_192)
    Step().queue(on: world)
    for pump in pumps { pump.run() }
    #expect(try read(tracing).0 == .init(dispatches: 1, handlings: 100, lost: 0))
    for pump in pumps { pump.cancel() }
  }

  @Test("D12: a second trace of a central traps")
  func trap() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let central = EventCentral()
      let first = central.startTracing()
      let second = central.startTracing()
      withExtendedLifetime((first, second)) {}
    }
    expectMessage(result, "A central has one trace at a time, and this one is being traced: finish that one first")
  }
}

extension Array {
  /// The first index from which on a condition holds, which holds for no element before it.
  fileprivate func partitioningIndex(where holds: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if holds(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
