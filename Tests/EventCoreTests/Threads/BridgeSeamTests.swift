// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@_spi(Bridge) @testable import EventCore

/// What `@_spi(Bridge)` gives to a bridge to other machines.
@Suite struct BridgeSeamTests {
  struct Small: Eventable { var number: Int }
  struct Large: Eventable {
    var number: Int
    var rest = SIMD8<Int>()
    var owner = Owner()
  }
  final class Owner: Sendable {}

  @Test("what arrives reaches every receiver but those that send (D4)", arguments: cores, [0, 1, 2, 3])
  func skips(core: EventCentral.Core, senders: Int) {
    let world = EventCentral(core: core)
    let sent = Log<Int>()
    let heard = Log<Int>()
    let threads = (0..<senders).map { _ in EventThread(on: world) }
    let listener = EventThread(on: world)
    let registrations = threads.flatMap { thread in
      [
        thread.addOutwardCallback { (event: Small, _, _, _) in sent.append(event.number) },
        thread.addOutwardCallback { (event: Large, _, _, _) in sent.append(event.number) },
      ]
    }
    listener.addEventCallback { (event: Small) in heard.append(event.number) }
    listener.addEventCallback { (event: Large) in heard.append(event.number) }
    #expect(Small(number: 1).queue(on: world) == senders + 1)
    #expect(world.dispatchInward(Small(number: 2), by: .queue, priority: .normal).accepted == 1)
    #expect(world.dispatchInward(Large(number: 3), by: .queue, priority: .normal).accepted == 1)
    #expect(Large(number: 4).queue(on: world) == senders + 1)
    for thread in threads { thread.drain() }
    listener.drain()
    #expect(heard.entries == [1, 2, 3, 4])
    #expect(sent.entries.sorted() == [1, 4].flatMap { Array(repeating: $0, count: senders) })
    for registration in registrations { registration.remove() }
  }

  @Test("what arrives passes over the senders of its own type alone, however many others there are", arguments: cores)
  func ownTypeAlone(core: EventCentral.Core) {
    let world = EventCentral(core: core)
    let threads = (0..<10).map { _ in EventThread(on: world) }
    let others = threads.map { $0.addOutwardCallback { (_: Large, _, _, _) in } }
    let own = threads[0].addOutwardCallback { (_: Small, _, _, _) in }
    #expect(world.outward.all(of: eventKey(Small.self)).count == 1)
    #expect(world.outward.all(of: eventKey(Large.self)).count == 10)
    others[0].remove()
    own.remove()
    #expect(world.outward.all(of: eventKey(Small.self)).isEmpty)
    #expect(world.outward.all(of: eventKey(Large.self)).count == 9)
    for other in others.dropFirst() { other.remove() }
    #expect(world.outward.all(of: eventKey(Large.self)).isEmpty)
  }

  @Test("what arrives and finds only senders ends its references", arguments: cores)
  func endsReferences(core: EventCentral.Core) {
    let world = EventCentral(core: core)
    let thread = EventThread(on: world)
    let registration = thread.addOutwardCallback { (_: Large, _, _, _) in Issue.record("It was sent.") }
    weak var owner: Owner?
    do {
      let event = Large(number: 1)
      owner = event.owner
      #expect(world.dispatchInward(event, by: .stack, priority: .high) == EventDispatchOutcome())
    }
    #expect(owner == nil)
    thread.drain()
    registration.remove()
  }

  @Test("what travels with an event that arrives is released for each receiver, skipped or not", arguments: cores)
  func carries(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let carrier = EventCarrier(
      capture: { lifetime.token() }, restore: { _, _, body in body() }, restoreInTask: { _, _, body in await body() })
    let world = EventCentral(CentralBasis(core: core, carrier: carrier), seed: nil)
    let threads = (0..<3).map { _ in EventThread(on: world) }
    let registrations = threads.dropLast().flatMap { thread in
      [thread.addOutwardCallback { (_: Small, _, _, _) in }, thread.addOutwardCallback { (_: Large, _, _, _) in }]
    }
    for hasListener in [false, true] {
      if hasListener {
        threads[2].addEventCallback { (_: Small) in }
        threads[2].addEventCallback { (_: Large) in }
      }
      #expect(world.dispatchInward(Small(number: 1), by: .queue, priority: .normal).accepted == (hasListener ? 1 : 0))
      #expect(world.dispatchInward(Large(number: 2), by: .queue, priority: .normal).accepted == (hasListener ? 1 : 0))
    }
    for thread in threads { thread.drain() }
    #expect(lifetime.total > 0 && lifetime.waitUntilNone())
    for registration in registrations { registration.remove() }
  }

  private final class Word: Sendable {
    let text: String
    init(_ text: String) { self.text = text }
    @TaskLocal static var current: Word?
  }

  @Test("what travels with an event is there for its message, and goes on with what arrives", arguments: cores)
  func fields(core: EventCentral.Core) {
    let carrier = EventCarrier(
      capture: { Word.current },
      restore: { value, _, body in Word.$current.withValue(value as? Word, operation: body) },
      restoreInTask: { value, _, body in await Word.$current.withValue(value as? Word) { await body() } },
      inject: { ["word": ($0 as! Word).text] }, extract: { fields in fields["word"].map { Word($0) } })
    let world = EventCentral(CentralBasis(core: core, carrier: carrier), seed: nil)
    let (sending, listening) = (EventThread(on: world), EventThread(on: world))
    let (sent, heard) = (Log<[String: String]>(), Log<String>())
    let registration = sending.addOutwardCallback { (_: Small, _, _, _) in sent.append(world.carriedFields) }
    listening.addEventCallback { (_: Small) in heard.append(Word.current?.text ?? "none") }
    Word.$current.withValue(Word("a")) { _ = Small(number: 1).queue(on: world) }
    Small(number: 2).queue(on: world)
    func arrive(_ headers: [String: String]) {
      world.withCarriedFields(headers) {
        #expect(world.dispatchInward(Small(number: 3), by: .queue, priority: .normal).accepted == 1)
      }
    }
    arrive(["word": "b"])
    // Not with what the thread has that dispatches it.
    Word.$current.withValue(Word("c")) { arrive([:]) }
    sending.drain()
    listening.drain()
    #expect(sent.entries == [["word": "a"], [:]])
    #expect(heard.entries == ["a", "none", "b", "none"])
    registration.remove()
    // A central that carries nothing asks for nothing.
    let plain = EventCentral(core: core)
    #expect(plain.carriedFields == [:])
    func asked() -> [String: String] {
      Issue.record("It asked.")
      return [:]
    }
    var hasRun = false
    plain.withCarriedFields(asked()) { hasRun = true }
    #expect(hasRun)
  }

  @Test("a callback that sends is told how the event was dispatched", arguments: cores)
  func lanes(core: EventCentral.Core) {
    let world = EventCentral(core: core)
    let thread = EventThread(on: world)
    let lanes = Log<String>()
    let registration = thread.addOutwardCallback { (_: Small, priority, method, _) in
      lanes.append("\(method) \(priority)")
    }
    Small(number: 1).stack(priority: .high, on: world)
    thread.drain()
    #expect(lanes.entries == ["stack high"])
    registration.remove()
  }

  @Test("a tree tells what has arrived from what is raised, also inside and after its handlers (D7)", arguments: cores)
  func raisesInward(core: EventCentral.Core) {
    let root = EventNode(name: "root", core: core)
    let leaf = EventNode(parent: root, name: "leaf")
    let told = Log<String>()
    for mode in [CaptureMode.onCapture, .onRaise, .onPropagate] {
      root.addHandler(mode, for: Small.self) { [weak leaf] context in
        // Before and after those of a raise inside, which begins in the first phase and uses the next walk.
        let (number, isInward) = (context.event.number, context.isInward)
        if number == 1 && context.phase == .capture { leaf?.raise(event: Small(number: 2)) }
        #expect(context.isInward == isInward)
        told.append("\(number) \(context.phase) \(isInward)")
        return .continue
      }
    }
    let phases = ["capture", "raise", "propagate"]
    leaf.raiseInward(event: Small(number: 1))
    #expect(told.take() == phases.map { "2 \($0) false" } + phases.map { "1 \($0) true" })
    // The walk, and what the last one has found, are used again.
    leaf.raise(event: Small(number: 3))
    leaf.raiseInward(event: Small(number: 4))
    #expect(told.take() == phases.map { "3 \($0) false" } + phases.map { "4 \($0) true" })
  }

  @Test("a bridge raises with a scope, which the handlers can tell", arguments: cores)
  func scopes(core: EventCentral.Core) {
    let root = EventNode(name: "root", core: core)
    let leaf = EventNode(parent: root, name: "leaf")
    let told = Log<String>()
    for mode in [CaptureMode.onCapture, .onRaise, .onPropagate] {
      leaf.addHandler(mode, for: Small.self) { context in
        told.append("\(context.phase) \(context.scope.rawValue) \(context.isInward)")
        return .continue
      }
    }
    leaf.raiseInward(event: Small(number: 1), scope: .bubbling)
    #expect(told.take() == ["raise 1 true"])
    leaf.raise(event: Small(number: 2), scope: [.capturing, .propagating])
    #expect(told.take() == ["capture 10 false", "propagate 10 false"])
    leaf.propagate(event: Small(number: 3))
    #expect(told.take() == ["propagate 2 false"])
  }

  @Test("the nodes from one down to another, or none", arguments: cores)
  func nodesBetween(core: EventCentral.Core) {
    let root = EventNode(name: "root", core: core)
    let hall = EventNode(parent: root, name: "hall")
    let line = EventNode(parent: hall, name: "line")
    #expect(root.nodes(downTo: line)?.map(\.name) == ["hall", "line"])
    #expect(hall.nodes(downTo: line)?.map(\.name) == ["line"])
    #expect(line.nodes(downTo: line)?.isEmpty == true)
    #expect(line.nodes(downTo: root) == nil)
    hall.detach()
    #expect(root.nodes(downTo: line) == nil)
  }
}
