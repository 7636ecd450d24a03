// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Holds up the thread of the client that takes it from the network.
private enum Parcel: CoordinateEvents, RemoteEvent, Equatable {
  static let subject = "tests.parcel"
  static let gate = DispatchSemaphore(value: 0)
  case number(Int)
  mutating func arrived(_ origin: RemoteOrigin) { Self.gate.wait() }
}

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

  @Test("too late: the parent takes longer than the child waits, or the server is away")
  func late() async throws {
    let server = try ServerProcess()
    let gate = DispatchSemaphore(value: 0)
    let asked = Log<String>()
    let plant = try await Machine(server) { event in
      asked.append("\(event)")
      if case Incident.smoke(1) = event { gate.wait() }
      return .handled
    }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server)
    let timedOut = "\(EventWaitError.timedOut(.milliseconds(50)))"
    let forwarding = try await hall.forward(to: "plant", within: .milliseconds(50))
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(timedOut)"])
    gate.signal()
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected })
    await hall.emit(Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(2) \(timedOut)")
    forwarding.remove()
    try server.restart()
    #expect(await eventually { hall.bridge.isConnected && plant.bridge.isConnected })
    try await plant.bridge.settle()
    // What was too late does not leave when the server is back; what comes after it does.
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(3))
    #expect(await hall.log.entries(atLeast: 3).last == "smoke(3) handled")
    #expect(asked.entries.last == "smoke(3)" && !asked.entries.contains("smoke(2)"))
    // It was too late before the drain.
    #expect(await hall.bridge.drain())
    // The first one as well, if this machine takes so long.
    #expect((1...2).contains(hall.bridge.counts.unsent))
    await plant.bridge.drain()
  }

  @Test("a parent that is slower than its children: the client drops, which is counted and told as too late")
  func overrun() async throws {
    let server = try ServerProcess()
    let asked = Log<String>()
    let plant = try await Machine(server, inbox: 10) { event in
      asked.append("\(event)")
      return .handled
    }
    try await plant.answer(as: "plant", carrying: [Parcel.self])
    let hall = try await Machine(server)
    let limit = Duration.milliseconds(1500)
    try await hall.forward(to: "plant", within: limit, carrying: [Parcel.self])
    for number in 0..<100 { await hall.emit(Parcel.number(number)) }
    #expect(await eventually { plant.bridge.counts.overrun > 80 })
    for _ in 0..<100 { Parcel.gate.signal() }
    // Each once.
    let told = await hall.log.entries(atLeast: 100)
    #expect(Set(told.map { $0.prefix { $0 != " " } }).count == 100)
    await plant.bridge.drain()
    #expect(await hall.bridge.drain())
    #expect(hall.log.count == 100)
    let counts = plant.bridge.counts
    // The hall keeps back what was too late before it left, if this machine takes so long.
    #expect(counts.received + counts.overrun + hall.bridge.counts.unsent == 100)
    #expect(asked.count == counts.dispatched)
    let late = Set(told.filter { $0.hasSuffix(" \(EventWaitError.timedOut(limit))") })
    let handled = Set(told.filter { $0.hasSuffix(" handled") })
    #expect(late.count + handled.count == 100)
    #expect(late.count >= counts.overrun)
    #expect(handled.isSubset(of: asked.entries.map { "\($0) handled" }))
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

  @Test("closed, full, and removed")
  func ends() async throws {
    let server = try ServerProcess()
    let gate = DispatchSemaphore(value: 0)
    let plant = try await Machine(server) { _ in
      gate.wait()
      return .handled
    }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server)
    let forwarding = try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(1))
    #expect(await eventually { plant.bridge.counts.dispatched == 1 })
    forwarding.remove()
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) closed"])
    // Nobody tells of what is not passed on any more.
    #expect(await hall.emit(Incident.smoke(2)) == [.unhandled])
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(3))
    hall.bridge.close()
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(3) closed")
    gate.signal()
    gate.signal()
    plant.bridge.close()
  }

  @Test("with the server away and the outbox full, what it refuses is told at once")
  func full() async throws {
    let server = try ServerProcess()
    let hall = try await Machine(server, outbox: .bounded(1, whenFull: .refuse))
    try await hall.forward(to: "plant")
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected })
    // One waits, and one may be with the thread that sends.
    for number in 0..<5 { await hall.emit(Incident.smoke(number)) }
    #expect(await hall.log.entries(atLeast: 3).allSatisfy { $0.hasSuffix(" other") })
    hall.bridge.close()
    let closed = await hall.log.entries(atLeast: 5).filter { $0.hasSuffix(" closed") }
    // It is told before it is counted as dropped.
    #expect(await eventually { closed.count == hall.bridge.counts.outbox.accepted })
  }

  @Test("what the outbox displaces is told at once", arguments: cores)
  func displaced(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let hall = try await Machine(server, core, outbox: .bounded(1, whenFull: .dropOldest))
    try await hall.forward(to: "plant")
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected })
    // The last one waits, and one may be with the thread that sends.
    for number in 0..<5 { await hall.emit(Incident.smoke(number)) }
    #expect(await hall.log.entries(atLeast: 3).allSatisfy { $0.hasSuffix(" other") })
    hall.bridge.close()
    #expect(await hall.log.entries(atLeast: 5).contains("smoke(4) closed"))
  }

  /// A parent that logs what it is asked, and keeps a leak until the gate opens.
  private func plant(
    _ server: ServerProcess, _ asked: Log<String>, _ gate: DispatchSemaphore
  ) async throws -> Machine {
    let plant = try await Machine(server) { event in
      asked.append("\(event)")
      if case Incident.leak = event { gate.wait() }
      return .handled
    }
    try await plant.answer(as: "plant")
    return plant
  }

  @Test("a partition that ends in time costs nothing; a parent that ends with the event is too late; a drain tells")
  func breaks() async throws {
    let server = try ServerProcess()
    let gate = DispatchSemaphore(value: 0)
    let asked = Log<String>()
    let plant = try await plant(server, asked, gate)
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    server.freeze()
    await hall.emit(Incident.smoke(1))
    server.thaw()
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) handled"])
    try await hall.forward(to: "plant", within: .milliseconds(200))
    await hall.emit(Incident.leak(pipe: "a"))
    // If this machine takes so long, it is too late before it leaves.
    #expect(await eventually { asked.count == 2 || hall.log.count == 2 })
    plant.bridge.close()
    #expect(
      await hall.log.entries(atLeast: 2).last == #"leak(pipe: "a") \#(EventWaitError.timedOut(.milliseconds(200)))"#)
    gate.signal()
    let (begun, last) = (Log<String>(), DispatchSemaphore(value: 0))
    let other = try await Machine(server) { event in
      begun.append("\(event)")
      last.wait()
      return .handled
    }
    try await other.answer(as: "plant")
    try await hall.forward(to: "plant")
    await hall.emit(Incident.leak(pipe: "b"))
    #expect(await begun.entries(atLeast: 1).count == 1)
    #expect(await hall.bridge.drain())
    #expect(await hall.log.entries(atLeast: 3).last == #"leak(pipe: "b") closed"#)
    last.signal()
    other.bridge.close()
  }

  @Test("the server dies with an event, or with its answer: told as too late, and not doubled")
  func serverDies() async throws {
    let server = try ServerProcess()
    let (asked, gate) = (Log<String>(), DispatchSemaphore(value: 0))
    let plant = try await plant(server, asked, gate)
    let hall = try await Machine(server)
    let limit = Duration.milliseconds(2000)
    try await hall.forward(to: "plant", within: limit)
    func die() async throws {
      server.stop()
      #expect(await eventually { !hall.bridge.isConnected && !plant.bridge.isConnected })
      try server.restart()
      #expect(await eventually { hall.bridge.isConnected && plant.bridge.isConnected })
      try await plant.bridge.settle()
    }
    await hall.emit(Incident.leak(pipe: "a"))
    #expect(await asked.entries(atLeast: 1).count == 1)
    server.freeze()
    let before = plant.bridge.messagesOut
    gate.signal()
    #expect(await eventually { plant.bridge.messagesOut > before })
    // Its client has written the answer, to a server that does not read it.
    await #expect(throws: NATSBridgeError.self) { try await plant.bridge.settle(within: .milliseconds(50)) }
    try await die()
    #expect(await hall.log.entries(atLeast: 1) == ["leak(pipe: \"a\") \(EventWaitError.timedOut(limit))"])
    server.freeze()
    await hall.emit(Incident.smoke(1))
    #expect(await eventually { hall.bridge.counts.sent == 2 })
    await #expect(throws: NATSBridgeError.self) { try await hall.bridge.settle(within: .milliseconds(50)) }
    try await die()
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(1) \(EventWaitError.timedOut(limit))")
    await hall.emit(Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 3).last == "smoke(2) handled")
    #expect(asked.entries == ["leak(pipe: \"a\")", "smoke(2)"])
    hall.bridge.close()
    plant.bridge.close()
  }

  @Test("while the server is away an event waits in the outbox, and is answered within the limit")
  func waits() async throws {
    let server = try ServerProcess()
    let plant = try await Machine(server) { _ in .handled }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    // Until the plant is there again, or else the event would come to nobody.
    await Held.hold(hall.bridge)
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected && !plant.bridge.isConnected })
    await hall.emit(Incident.smoke(1))
    try server.restart()
    #expect(await eventually { hall.bridge.isConnected && plant.bridge.isConnected })
    try await plant.bridge.settle()
    Held.gate.signal()
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) handled"])
    hall.bridge.close()
    plant.bridge.close()
  }

  @Test("an event whose subject the server forbids is told as too late, and as a fault")
  func forbidden() async throws {
    let server = try ServerProcess(
      configuration: """
        authorization { users: [ { user: a, password: b, permissions: { publish: { deny: "eventcore.emission.plant.>" } } } ] }
        no_auth_user: a
        """)
    let world = EventCentral()
    let faults = Log<String>()
    NATSStatus.addListener(
      nil, { status in if case .fault(let text) = status.change { faults.append(text) } },
      executeOn: .listenerThread, on: world)
    let plant = try await Machine(server) { _ in .handled }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server, on: world)
    let limit = Duration.milliseconds(300)
    try await hall.forward(to: "plant", within: limit)
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(EventWaitError.timedOut(limit))"])
    #expect(await faults.entries(atLeast: 1).count == 1)
    hall.bridge.close()
    plant.bridge.close()
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
