// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// A coordinator that tells of its end.
private final class Confined: Coordinator {
  private let ended: @Sendable () -> Void

  init(_ ended: @escaping @Sendable () -> Void) {
    self.ended = ended
    super.init()
  }

  deinit { ended() }
}

/// A queue on which coordinators are used.
private final class Place: @unchecked Sendable {
  let queue = DispatchQueue(label: "plant")
  private let key = DispatchSpecificKey<Void>()
  /// Used on the queue.
  var top: Confined?

  init() { queue.setSpecific(key: key, value: ()) }

  var isCurrent: Bool { DispatchQueue.getSpecific(key: key) != nil }
}

@Suite struct CoordinatorTests {
  @Test("what nobody here stops goes to the parent on another machine, whose answer comes back (D2)", arguments: cores)
  func answers(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let asked = Log<String>()
    let plant = try await Machine(server, core) { event in
      asked.append("\(event)")
      guard case Incident.leak = event else { return .pass }
      return .handled
    }
    try await plant.answer(as: "plant")
    // Stops shifts.
    let hall = try await Machine(server, core) { $0 is Shift ? .handled : .pass }
    try await hall.forward(to: "plant")
    let emissions = await hall.emit(Incident.smoke(1), Incident.leak(pipe: "a"), Shift.began, Incident.smoke(2))
    #expect(emissions == [.unhandled, .unhandled, .handled, .unhandled])
    #expect(
      await hall.log.entries(atLeast: 3) == ["smoke(1) unhandled", #"leak(pipe: "a") handled"#, "smoke(2) unhandled"])
    #expect(asked.entries == ["smoke(1)", #"leak(pipe: "a")"#, "smoke(2)"])
    #expect(await hall.bridge.drain())
    #expect(hall.bridge.counts.sent == 3)
    #expect(await eventually { plant.bridge.counts.dispatched == 3 })
    await plant.bridge.drain()
  }

  @Test("nobody there: no machine, or one whose coordinators are gone (D9)")
  func nobody() async throws {
    let server = try ServerProcess()
    let (hall, plant) = (try await Machine(server), try await Machine(server) { _ in .handled })
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(EventWaitError.nobodyAnswers)"])
    let registration = try await plant.answer(as: "plant")
    await hall.emit(Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(2) handled")
    await plant.leave()
    await hall.emit(Incident.smoke(3))
    #expect(await hall.log.entries(atLeast: 3).last == "smoke(3) \(EventWaitError.nobodyAnswers)")
    registration.remove()
    try await plant.bridge.settle()
    await hall.emit(Incident.smoke(4))
    #expect(await hall.log.entries(atLeast: 4).last == "smoke(4) \(EventWaitError.nobodyAnswers)")
    hall.bridge.close()
    plant.bridge.close()
  }

  @Test("coordinators end where they are used, also while events come for them (D9)", arguments: cores)
  func confinement(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let bridge = try await NATSBridge.to(server, on: EventCentral(core: core))
    let place = Place()
    let (ended, isOver, childIsOver) = (Log<Bool>(), Log<Void>(), Log<Void>())
    let raw = try RawClient(server)
    Thread.detachNewThread {
      while isOver.count == 0 {
        for _ in 0..<50 { raw.publish("eventcore.emission.plant.tests.shift", Data(#"{"began":{}}"#.utf8)) }
        // No more than the plant takes.
        raw.flush()
      }
      childIsOver.append(())
    }
    for round in 1...200 {
      let registration = try place.queue.sync {
        let top = Confined { ended.append(place.isCurrent) }
        top.start()
        place.top = top
        return try bridge.answerUnhandled(
          by: top, as: "plant", carrying: [Shift.self], executeOn: .dispatchQueue(place.queue))
      }
      let before = bridge.counts.received
      #expect(await eventually { bridge.counts.received > before + 20 })
      place.queue.async { place.top = nil }
      #expect(await ended.entries(atLeast: round).count == round)
      registration.remove()
    }
    isOver.append(())
    _ = await childIsOver.entries(atLeast: 1)
    #expect(!ended.entries.contains(false))
    bridge.close()
  }

  @Test("over three machines the last one's answer comes back, and what the middle one has met")
  func chain() async throws {
    let server = try ServerProcess()
    let company = try await Machine(server) { $0 as? Incident == .smoke(1) ? .handled : .pass }
    let plant = try await Machine(server)
    let hall = try await Machine(server)
    try await plant.answer(as: "plant")
    try await plant.forward(to: "company")
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(0))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(0) answerFailed"])
    #expect(await plant.log.entries(atLeast: 1) == ["smoke(0) \(EventWaitError.nobodyAnswers)"])
    try await company.answer(as: "company")
    await hall.emit(Incident.smoke(1), Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 3).suffix(2) == ["smoke(1) handled", "smoke(2) unhandled"])
    #expect(await plant.log.entries(atLeast: 3).suffix(2) == ["smoke(1) handled", "smoke(2) unhandled"])
    for machine in [hall, plant, company] { machine.bridge.close() }
  }

  @Test("events that an interceptor emits meanwhile are passed on with answers of their own")
  func nested() async throws {
    let server = try ServerProcess()
    let company = try await Machine(server) { event in
      if case Incident.leak = event { return .handled }
      return .pass
    }
    try await company.answer(as: "company")
    let plant = try await Machine(server)
    try await plant.answer(as: "plant")
    try await plant.forward(to: "company")
    await plant.interceptBelow { event, emit in
      guard case .smoke(let number) = event else { return .pass }
      emit(Incident.leak(pipe: "\(number)"))
      return number == 1 ? .handled : .pass
    }
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(1), Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 2) == ["smoke(1) handled", "smoke(2) unhandled"])
    #expect(
      await plant.log.entries(atLeast: 3) == [
        #"leak(pipe: "1") handled"#, #"leak(pipe: "2") handled"#, "smoke(2) unhandled",
      ])
    for machine in [hall, plant, company] { machine.bridge.close() }
  }

  @Test("an event that the parent does not pass on gets no answer to one that an interceptor has emitted meanwhile")
  func nestedOnly() async throws {
    let server = try ServerProcess()
    let company = try await Machine(server) { _ in .handled }
    try await company.answer(as: "company")
    let plant = try await Machine(server)
    try await plant.answer(as: "plant")
    try await plant.forward(to: "company", carrying: [Shift.self])
    await plant.interceptBelow { _, emit in
      emit(Shift.began)
      return .pass
    }
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) unhandled"])
    #expect(await plant.log.entries(atLeast: 1) == ["began handled"])
    for machine in [hall, plant, company] { machine.bridge.close() }
  }

  @Test("machines that are parents of one another in a circle end it", arguments: 1...3)
  func circle(count: Int) async throws {
    let server = try ServerProcess()
    let asked = Log<String>()
    // With one machine, a second bridge of the same central is the parent.
    let worlds = count == 1 ? Array(repeating: EventCentral(), count: 2) : (0..<count).map { _ in EventCentral() }
    var machines: [Machine] = []
    for (index, world) in worlds.enumerated() {
      let machine = try await Machine(server, on: world) { event in
        asked.append("\(index) \(event)")
        return .pass
      }
      try await machine.answer(as: "place\(index)")
      machines.append(machine)
    }
    for (index, machine) in machines.enumerated() {
      try await machine.forward(to: "place\((index + 1) % machines.count)")
    }
    await machines[0].emit(Incident.smoke(7))
    #expect(await machines[0].log.entries(atLeast: 1).first == "smoke(7) unhandled")
    // Each parent once, and the emitter's own coordinators once more, since it is a parent too.
    #expect(asked.entries == ([0] + Array(1..<machines.count) + [0]).map { "\($0) smoke(7)" })
    for machine in machines { machine.bridge.close() }
  }

  @Test("what a task emits that an interceptor has started goes also to a parent that the event before has passed")
  func tasks() async throws {
    let server = try ServerProcess()
    let asked = Log<String>()
    let plant = try await Machine(server) { event in
      asked.append("\(event)")
      if case Incident.leak = event { return .handled }
      return .pass
    }
    let hall = try await Machine(server)
    try await plant.answer(as: "plant")
    try await plant.forward(to: "hall")
    try await hall.answer(as: "hall")
    try await hall.forward(to: "plant")
    // When the event comes back from the plant. The actor lets the task emit when the climb is over.
    await hall.interceptBelow { [weak hall] event, _ in
      if case .smoke = event { Task { await hall?.emit(Incident.leak(pipe: "a")) } }
      return .pass
    }
    await hall.emit(Incident.smoke(1))
    // The hall passes smoke on twice: when it is emitted there, and when it comes back.
    #expect(
      await hall.log.entries(atLeast: 3).sorted() == [
        #"leak(pipe: "a") handled"#, "smoke(1) unhandled", "smoke(1) unhandled",
      ])
    #expect(asked.entries == ["smoke(1)", #"leak(pipe: "a")"#])
    for machine in [hall, plant] { machine.bridge.close() }
  }

  @Test("of several machines of one name one is asked")
  func group() async throws {
    let server = try ServerProcess()
    let asked = Log<Int>()
    var plants: [Machine] = []
    for index in 0..<3 {
      let plant = try await Machine(server) { _ in
        asked.append(index)
        return .handled
      }
      try await plant.answer(as: "plant")
      plants.append(plant)
    }
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    for number in 0..<60 { await hall.emit(Incident.smoke(number)) }
    #expect(await hall.log.entries(atLeast: 60).allSatisfy { $0.hasSuffix(" handled") })
    #expect(asked.count == 60)
    #expect(Set(asked.entries) == [0, 1, 2])
    for machine in plants + [hall] { machine.bridge.close() }
  }

  @Test("a machine whose coordinators are gone leaves the others of its name, and forwards no more (D9)")
  func leaving() async throws {
    let server = try ServerProcess()
    var plants: [Machine] = []
    var answering: [RemoteRegistration] = []
    for _ in 0..<2 {
      let plant = try await Machine(server) { _ in .handled }
      answering.append(try await plant.answer(as: "plant"))
      plants.append(plant)
    }
    let hall = try await Machine(server)
    let forwarding = try await hall.forward(to: "plant")
    await plants[0].leave()
    var count = 0
    // The server chooses by chance whom it gives one.
    while answering[0].isActive, count < 10_000 {
      await hall.emit(Incident.smoke(count))
      count += 1
      #expect(await hall.log.entries(atLeast: count).count == count)
    }
    #expect(!answering[0].isActive && answering[1].isActive)
    for number in 0..<60 { await hall.emit(Incident.smoke(number)) }
    #expect(await hall.log.entries(atLeast: count + 60).suffix(60).allSatisfy { $0.hasSuffix(" handled") })
    #expect(forwarding.isActive)
    await hall.leave()
    #expect(await eventually { !forwarding.isActive })
    for machine in plants + [hall] { machine.bridge.close() }
  }

  @Test("what is no such event costs a counter")
  func malice() async throws {
    let server = try ServerProcess(configuration: "max_payload: 4194304")
    let plant = try await Machine(server) { _ in .handled }
    try await plant.answer(as: "plant")
    let raw = try RawClient(server)
    raw.publish("eventcore.emission.plant.tests.incident", Data("{".utf8))
    #expect(await eventually { plant.bridge.counts.undecodable == 1 })
    // Who waits for an answer is told so at once.
    let hall = try await NATSBridge.to(server, on: EventCentral())
    let answers = Log<String>()
    let requests = PendingRequests(within: .seconds(60), hall.options)
    _ = try hall.receive(requests.pattern, nil) { requests.takeReply($0) }
    try await hall.settle()
    for (index, body) in [Data("{".utf8), Data(count: plant.bridge.options.longestMessage + 1)].enumerated() {
      let number = try #require(
        requests.begin { answer in
          guard case .failure(let error as NATSBridgeError) = answer else { return answers.append("\(answer)") }
          answers.append("\(error.reason)")
        })
      raw.publish("eventcore.emission.plant.tests.incident", reply: requests.subject(of: number), body)
      #expect(await answers.entries(atLeast: index + 1).last == "answerFailed")
    }
    #expect(plant.bridge.counts.undecodable == 2 && plant.bridge.counts.tooLong == 1)
    hall.close()
    raw.publish("eventcore.emission.plant.tests.incident", Data(#"{"smoke":{"_0":1}}"#.utf8))
    #expect(await eventually { plant.bridge.counts.dispatched == 1 })
    plant.bridge.close()
  }
}
