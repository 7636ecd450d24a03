// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D4: values of any shape arrive as they were dispatched")
struct PayloadTests {
  struct Empty: Eventable {}
  struct Byte: Eventable, Equatable { var value: UInt8 }
  struct Text: Eventable, Equatable { var value: String }
  struct Full: Eventable, Equatable { var a = 1, b = 2, c = 3, d = 4 }
  struct OneMore: Eventable, Equatable { var full = Full(), e: UInt8 = 5 }
  struct Large: Eventable, Equatable { var parts = [Int](repeating: 9, count: 3), rest = Rest() }
  struct Rest: Sendable, Equatable {
    var a = Full(), b = Full(), c = Full(), d = Full(), e = Full()
  }
  struct Aligned: Eventable, Equatable { var value: SIMD8<Double> }
  indirect enum Tree: Eventable, Equatable {
    case leaf
    case node(Tree, Tree)
  }
  struct Carrying: Eventable { var token: Lifetime.Token }
  struct LargeCarrying: Eventable { var token: Lifetime.Token, rest = Rest() }
  final class Object: Sendable {}
  struct Weakly: Eventable { weak var object: Object? }

  /// Sends a value to one, two and three receivers, alone and in a batch of three.
  private func checkArrival<E: Eventable & Equatable>(_ event: E, _ core: EventCentral.Core) {
    for receivers in 1...3 {
      let central = EventCentral(core: core)
      let log = Log<E>()
      let threads = (0..<receivers).map { _ in
        let thread = EventThread(on: central)
        thread.addEventCallback { (event: E) in log.append(event) }
        thread.addEventCallback { (event: E) in log.append(event) }
        return thread
      }
      event.queue(on: central)
      [event, event, event].stack(on: central)
      for thread in threads { #expect(thread.drain()) }
      #expect(log.entries == Array(repeating: event, count: 8 * receivers))
    }
  }

  @Test(
    "values that are trivial, with references, at and past a slot's size, over-aligned, indirect",
    arguments: cores)
  func shapes(core: EventCentral.Core) {
    checkArrival(Byte(value: 7), core)
    checkArrival(Text(value: "a string that is too long for its inline form"), core)
    checkArrival(Full(), core)
    checkArrival(OneMore(), core)
    checkArrival(Large(), core)
    checkArrival(Aligned(value: SIMD8(1, 2, 3, 4, 5, 6, 7, 8)), core)
    checkArrival(Tree.node(.leaf, .node(.leaf, .leaf)), core)
  }

  // A weak reference may be known to its object by its address, as those to Objective-C objects are.
  @Test("an event with a weak reference is never moved as bytes, and arrives", arguments: cores)
  func weakReference(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let held = HeldThread(thread)
    let object = Object()
    let log = Log<Bool>()
    thread.addEventCallback { (event: Weakly) in log.append(event.object === object) }
    Weakly(object: object).queue(on: central)
    if core == .locking {
      // Its records are moved, so none of them may hold it.
      let place = central.router.beginOne(
        key: eventKey(Weakly.self), lane: Lane(.queue, .normal).index,
        size: MemoryLayout<Weakly>.size, alignment: payloadAlignment(of: Weakly.self))
      #expect(place == nil)
    }
    for _ in 0..<500 {
      Weakly(object: object).queue(on: central)
      Weakly(object: object).stack(on: central)
    }
    held.letGo()
    #expect(thread.drain())
    #expect(log.entries == Array(repeating: true, count: 1_001))
  }

  @Test("an over-aligned payload lies at its alignment", arguments: cores)
  func alignment(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Bool>()
    thread.addEventCallback { (event: Aligned) in
      withUnsafePointer(to: event.value) {
        log.append(UInt(bitPattern: $0) % UInt(MemoryLayout<SIMD8<Double>>.alignment) == 0)
      }
    }
    for _ in 0..<100 { Aligned(value: .zero).queue(on: central) }
    #expect(thread.drain())
    #expect(log.entries == Array(repeating: true, count: 100))
  }

  @Test("a zero-sized event is delivered and counted", arguments: cores)
  func zeroSized(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Empty) in }
    for _ in 0..<10 { Empty().queue(on: central) }
    #expect(thread.drain())
    #expect(thread.statistics.delivered == 10)
  }

  @Test(
    "references are retained once and released once: 0 to 3 receivers, 0 to 2 callbacks each",
    arguments: cores)
  func lifetimes(core: EventCentral.Core) {
    for receivers in 0...3 {
      for callbacks in 0...2 {
        let (central, lifetime) = (EventCentral(core: core), Lifetime())
        let threads = (0..<receivers).map { _ in
          let thread = EventThread(on: central)
          for _ in 0..<callbacks {
            thread.addEventCallback { (event: Carrying) in withExtendedLifetime(event) {} }
            thread.addEventCallback { (event: LargeCarrying) in withExtendedLifetime(event) {} }
          }
          return thread
        }
        for _ in 0..<10 {
          Carrying(token: lifetime.token()).queue(on: central)
          LargeCarrying(token: lifetime.token()).stack(on: central)
        }
        (0..<70).map { _ in Carrying(token: lifetime.token()) }.queue(on: central)
        (0..<70).map { _ in LargeCarrying(token: lifetime.token()) }.stack(on: central)
        for thread in threads { #expect(thread.drain()) }
        #expect(lifetime.alive == 0)
        #expect(lifetime.total == 160)
      }
    }
  }
}
