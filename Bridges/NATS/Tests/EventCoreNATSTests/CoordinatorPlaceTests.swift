// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Coordinators in a place that takes few events, and beside others.
@Suite struct CoordinatorPlaceTests {
  private struct Work: Eventable {
    var body: @Sendable () -> Void
  }

  /// An event thread that takes so many events, with a coordinator that is used there.
  private final class Office: @unchecked Sendable {
    // Constant, and each of its members may be used by any thread, but for the desk, which the thread alone uses.
    let thread: EventThread
    let bridge: NATSBridge
    let log = Log<String>()
    private let desk = Coordinator()

    init(_ bridge: NATSBridge, taking count: Int) {
      self.bridge = bridge
      thread = EventThread(on: bridge.central, mailbox: .bounded(count, whenFull: .refuse))
      thread.addEventCallback { (work: Work) in work.body() }
    }

    /// Returns what the closure returns on the thread.
    func perform<Result: Sendable>(_ body: @escaping @Sendable (Coordinator) throws -> Result) async throws -> Result {
      let results = Log<Swift.Result<Result, any Error>>()
      thread.queueEvent(Work { [self] in results.append(.init { try body(desk) }) })
      return try #require(await results.entries(atLeast: 1).first).get()
    }

    /// Keeps the thread busy after a closure, with so many events waiting, until the gate is open.
    func fill(
      _ count: Int, until gate: DispatchSemaphore, _ body: @escaping @Sendable (Coordinator) -> Void = { _ in }
    ) async {
      let begun = Log<Void>()
      thread.queueEvent(
        Work { [self] in
          body(desk)
          begun.append(())
          gate.wait()
        })
      _ = await begun.entries(atLeast: 1)
      for _ in 0..<count { #expect(thread.queueEvent(Work {})) }
    }

    func forward() async throws {
      _ = try await perform { [bridge, log] desk in
        desk.start()
        return try bridge.forwardUnhandled(of: desk, to: "plant", carrying: [Incident.self], within: .seconds(60)) {
          log.append("\($0) \($1)")
        }
      }
    }
  }

  @Test("each answer comes to a place whose mailbox is full, and takes no place there", arguments: cores)
  func fullChild(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let plant = try await Machine(server, core) { _ in .handled }
    try await plant.answer(as: "plant", carrying: [Incident.self])
    let hall = Office(try await NATSBridge.to(server, on: EventCentral(core: core)), taking: 4)
    try await hall.forward()
    let gate = DispatchSemaphore(value: 0)
    await hall.fill(4, until: gate) { desk in for number in 0..<10 { desk.emitEvent(Incident.smoke(number)) } }
    #expect(await eventually { plant.bridge.counts.dispatched == 10 })
    // The answers have left the one, and come to the other.
    #expect(await plant.bridge.drain())
    try await hall.bridge.settle()
    gate.signal()
    #expect(await eventually(within: .seconds(20)) { hall.log.count == 10 })
    #expect(hall.log.entries == (0..<10).map { "smoke(\($0)) success(EventCore.EventEmission.handled)" })
    #expect(hall.thread.mailboxStatistics.dropped == 0)
    #expect(await hall.bridge.drain())
    hall.thread.cancel()
  }

  @Test(
    "a parent whose place is full says that it is too busy, alone and beside another one", arguments: cores,
    [false, true])
  func fullParent(core: EventCentral.Core, hasOther: Bool) async throws {
    let server = try ServerProcess()
    let world = EventCentral(core: core)
    let plant = Office(try await NATSBridge.to(server, on: world), taking: 1)
    _ = try await plant.perform { [bridge = plant.bridge] desk in
      desk.start()
      return try bridge.answerUnhandled(by: desk, as: "plant", carrying: [Incident.self])
    }
    let other = hasOther ? try await Machine(server, on: world) { _ in .handled } : nil
    try await other?.answer(as: "other", carrying: [Incident.self])
    try await plant.bridge.settle()
    let hall = Office(try await NATSBridge.to(server, on: EventCentral(core: core)), taking: 10)
    try await hall.forward()
    let gate = DispatchSemaphore(value: 0)
    await plant.fill(1, until: gate)
    _ = try await hall.perform { $0.emitEvent(Incident.smoke(1)) }
    let told = try #require(await hall.log.entries(atLeast: 1).first)
    #expect(told.contains("too busy"), "\(told)")
    #expect(plant.bridge.counts.unheard == 1 && plant.bridge.counts.dispatched == 0)
    gate.signal()
    #expect(await eventually { plant.thread.eventCount == 0 })
    _ = try await hall.perform { $0.emitEvent(Incident.smoke(2)) }
    #expect(await hall.log.entries(atLeast: 2).last?.contains("unhandled") == true)
    // Counted after the place has taken it.
    #expect(await eventually { plant.bridge.counts.dispatched == 1 })
    for bridge in [hall.bridge, plant.bridge] { await bridge.drain() }
    await other?.bridge.drain()
    for office in [hall, plant] { office.thread.cancel() }
  }
}
