// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("What is kept about observers that are gone is freed")
struct ObserverGroupTests {
  @Test("at the next notification")
  func atNotification() {
    let group = ObserverGroup()
    let log = Log<String>()
    let staying = Ear("staying", log)
    #expect(group.add(staying, nil))
    do {
      let going = (0..<3).map { _ in Ear("gone", log) }
      for ear in going { #expect(group.add(ear, nil)) }
    }
    #expect(group.entryCount == 4)
    group.notifyDirectly { (ear: any Listener) in ear.hear("x") }
    #expect(group.entryCount == 1)
    #expect(log.entries == ["staying x"])
    // Gone after a view was made of it.
    do {
      let leaving = Ear("leaving", log)
      #expect(group.add(leaving, nil))
      group.notifyDirectly { (ear: any Listener) in ear.hear("y") }
      #expect(group.entryCount == 2)
    }
    group.notify { (ear: any Listener) in ear.hear("z") }
    #expect(group.entryCount == 1)
    #expect(log.entries == ["staying x", "staying y", "leaving y", "staying z"])
  }

  @Test("as others are added, when nobody notifies")
  func atAddition() {
    let group = ObserverGroup()
    let log = Log<String>()
    let staying = (0..<20).map { Ear("\($0)", log) }
    for ear in staying { #expect(group.add(ear, nil)) }
    for _ in 0..<10_000 {
      #expect(group.add(Ear("gone", log), nil))
      #expect(group.entryCount <= 64)
    }
    group.notifyDirectly { (ear: any Listener) in ear.hear("x") }
    #expect(log.entries == (0..<20).map { "\($0) x" })
  }

  @Test("keys whose observers went are let go, at the next notification and as others are added")
  func keys() {
    final class Key: Hashable, Sendable {
      let number: Int
      let token: Lifetime.Token
      init(_ number: Int, _ token: Lifetime.Token) {
        self.number = number
        self.token = token
      }
      static func == (left: Key, right: Key) -> Bool { left.number == right.number }
      // Few values, so that buckets hold several keys.
      func hash(into hasher: inout Hasher) { hasher.combine(number % 7) }
    }
    let (log, lifetime, groups) = (Log<String>(), Lifetime(), KeyedObserverGroups())
    let ear = Ear("ear", log)
    groups.add(ear, for: Key(0, lifetime.token()), nil)
    groups.add(Ear("gone", log), for: Key(1, lifetime.token()), nil)
    #expect(lifetime.alive == 2)
    groups.notify(Key(1, lifetime.token())) { (ear: any Listener) in ear.hear("1") }
    #expect(lifetime.alive == 1)
    groups.remove(ear, for: Key(0, lifetime.token()))
    #expect(lifetime.alive == 0)
    #expect(groups.keyCount == 0)

    groups.add(ear, for: Key(0, lifetime.token()), nil)
    for number in 1...1_000 {
      groups.add(Ear("gone", log), for: Key(number, lifetime.token()), nil)
      #expect(groups.keyCount <= 32)
      #expect(lifetime.alive == groups.keyCount)
    }
    groups.notifyDirectly(Key(0, lifetime.token())) { (ear: any Listener) in ear.hear("0") }
    #expect(log.entries == ["ear 0"])
  }

  @Test("a group that closed takes nobody; one with observers does not close")
  func closing() {
    let group = ObserverGroup()
    let ear = Ear("ear", Log())
    #expect(group.add(ear, nil))
    #expect(!group.closeIfEmpty())
    group.remove(ear)
    #expect(group.closeIfEmpty())
    #expect(!group.add(ear, nil))
  }

  @Test("a context is handed the calls in order, and a removed observer's are not made")
  func contexts() {
    final class Held: ObserverContext {
      let bodies = Log<@Sendable () -> Void>()
      func run(_ body: @escaping @Sendable () -> Void) { bodies.append(body) }
    }
    let (group, context, log) = (ObserverGroup(), Held(), Log<String>())
    let (first, second) = (Ear("1", log), Ear("2", log))
    var third: Ear? = Ear("3", log)
    #expect(group.add(first, context))
    #expect(group.add(second, nil))
    #expect(group.add(third!, context))
    for text in ["a", "b"] { group.notify { (ear: any Listener) in ear.hear(text) } }
    #expect(log.take() == ["2 a", "2 b"])
    let bodies = context.bodies.take()
    #expect(bodies.count == 4)
    bodies[0]()
    bodies[1]()
    #expect(log.take() == ["1 a", "3 a"])
    group.remove(first)
    third = nil
    bodies[2]()
    bodies[3]()
    #expect(log.take().isEmpty)
  }
}
