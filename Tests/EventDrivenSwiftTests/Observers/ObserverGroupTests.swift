// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore
@testable import EventDrivenSwift

@Suite("Groups of observers: what they keep, and when they let go of it")
struct ObserverGroupTests {
  @Test("what is kept of gone observers is freed at the next notification")
  func atNotification() {
    let group = ObserverGroup()
    let log = Log<String>()
    let staying = Ear("staying", log)
    group.add(staying) { nil }
    do {
      let going = (0..<3).map { _ in Ear("gone", log) }
      for ear in going { group.add(ear) { nil } }
    }
    #expect(group.entryCount == 4)
    group.notifyDirectly { (ear: any Listener) in ear.hear("x") }
    #expect(group.entryCount == 1)
    #expect(log.entries == ["staying x"])
    // This observer goes after the group has made a view with it.
    do {
      let leaving = Ear("leaving", log)
      group.add(leaving) { nil }
      group.notifyDirectly { (ear: any Listener) in ear.hear("y") }
      #expect(group.entryCount == 2)
    }
    group.notify { (ear: any Listener) in ear.hear("z") }
    #expect(group.entryCount == 1)
    #expect(log.entries == ["staying x", "staying y", "leaving y", "staying z"])
  }

  @Test("what is kept of gone observers is freed as others are added, if nobody notifies")
  func atAddition() {
    let group = ObserverGroup()
    let log = Log<String>()
    let staying = (0..<20).map { Ear("\($0)", log) }
    for ear in staying { group.add(ear) { nil } }
    for _ in 0..<10_000 {
      group.add(Ear("gone", log)) { nil }
      #expect(group.entryCount <= 64)
    }
    group.notifyDirectly { (ear: any Listener) in ear.hear("x") }
    #expect(log.entries == (0..<20).map { "\($0) x" })
  }

  @Test("keys whose observers are gone are freed")
  func keys() {
    final class Key: Hashable, Sendable {
      let number: Int
      let token: Lifetime.Token
      init(_ number: Int, _ token: Lifetime.Token) {
        self.number = number
        self.token = token
      }
      static func == (left: Key, right: Key) -> Bool { left.number == right.number }
      // There are few hash values, so that a bucket holds several keys.
      func hash(into hasher: inout Hasher) { hasher.combine(number % 7) }
    }
    let (log, lifetime, groups) = (Log<String>(), Lifetime(), KeyedObserverGroups())
    let ear = Ear("ear", log)
    groups.add(ear, for: Key(0, lifetime.token())) { nil }
    groups.add(Ear("gone", log), for: Key(1, lifetime.token())) { nil }
    #expect(lifetime.alive == 2)
    groups.notify(Key(1, lifetime.token())) { (ear: any Listener) in ear.hear("1") }
    #expect(lifetime.alive == 1)
    groups.remove(ear, for: Key(0, lifetime.token()))
    #expect(lifetime.alive == 0)
    #expect(groups.keyCount == 0)

    groups.add(ear, for: Key(0, lifetime.token())) { nil }
    for number in 1...1_000 {
      groups.add(Ear("gone", log), for: Key(number, lifetime.token())) { nil }
      #expect(groups.keyCount <= 32)
      #expect(lifetime.alive == groups.keyCount)
    }
    groups.notifyDirectly(Key(0, lifetime.token())) { (ear: any Listener) in ear.hear("0") }
    #expect(log.entries == ["ear 0"])
  }

  @Test("a group that has closed takes no observer; one with observers does not close")
  func closing() {
    let group = ObserverGroup()
    let ear = Ear("ear", Log())
    group.add(ear) { nil }
    #expect(!group.closeIfEmpty())
    group.remove(ear)
    #expect(group.closeIfEmpty())
    let isAdded = group.add(ear) { nil }
    #expect(!isAdded)
  }

  /// A context whose jobs the test runs.
  final class HeldContext: ObserverContext {
    let jobs = Log<@Sendable () -> Void>()
    let uses = Atomic<Int>(0)
    let hasEnded = Atomic<Bool>(false)

    var isUsable: Bool { !hasEnded.load(ordering: .acquiring) }
    let drains = Atomic<Bool>(false)
    var isDraining: Bool { drains.load(ordering: .acquiring) }

    func run(_ body: @escaping @Sendable () -> Void) -> Bool {
      guard isUsable else { return false }
      jobs.append(body)
      return true
    }

    func leave() { uses.wrappingSubtract(1, ordering: .relaxed) }

    func used() -> Self {
      uses.wrappingAdd(1, ordering: .relaxed)
      return self
    }

    var useCount: Int { uses.load(ordering: .relaxed) }
  }

  @Test("a context gets the calls in order; calls of removed or gone observers are not made")
  func contexts() {
    let (group, context, log) = (ObserverGroup(), HeldContext(), Log<String>())
    let (first, second) = (Ear("1", log), Ear("2", log))
    var third: Ear? = Ear("3", log)
    group.add(first) { context.used() }
    group.add(second) { nil }
    group.add(third!) { context.used() }
    for text in ["a", "b"] { group.notify { (ear: any Listener) in ear.hear(text) } }
    #expect(log.take() == ["2 a", "2 b"])
    let jobs = context.jobs.take()
    #expect(jobs.count == 4)
    jobs[0]()
    jobs[1]()
    #expect(log.take() == ["1 a", "3 a"])
    group.remove(first)
    third = nil
    jobs[2]()
    jobs[3]()
    #expect(log.take().isEmpty)
    // No call is handed over for an observer that is gone.
    group.notify { (ear: any Listener) in ear.hear("c") }
    #expect(context.jobs.entries.isEmpty)
    #expect(log.entries == ["2 c"])
  }

  @Test("a context is left once: with a removal, the end of the observer, or that of the group")
  func contextsAreLeft() {
    let context = HeldContext()
    var group: ObserverGroup? = ObserverGroup()
    let (first, second) = (Ear("1", Log()), Ear("2", Log()))
    group!.add(first) { context.used() }
    group!.add(first) { context.used() }
    group!.add(second) { context.used() }
    #expect(context.useCount == 2)
    group!.remove(first)
    group!.remove(first)
    #expect(context.useCount == 1)
    do {
      let third = Ear("3", Log())
      group!.add(third) { context.used() }
      #expect(context.useCount == 2)
    }
    group!.notify { (ear: any Listener) in ear.hear("x") }
    #expect(context.useCount == 1)
    group = nil
    // The calls that wait may hold the group.
    _ = context.jobs.take()
    #expect(context.useCount == 0)
  }

  @Test("D9: the context that an observer had as it was added again is left once nothing waits there any more")
  func drainedContext() {
    let (group, context, log) = (ObserverGroup(), HeldContext(), Log<String>())
    let ear = Ear("ear", log)
    group.add(ear) { context.used() }
    group.notify { (ear: any Listener) in ear.hear("x") }
    context.hasEnded.store(true, ordering: .releasing)
    context.drains.store(true, ordering: .releasing)
    for _ in 0..<2 { group.add(ear) { nil } }
    group.sweep()
    #expect(context.useCount == 1)
    for job in context.jobs.take() { job() }
    #expect(log.entries == ["ear x"])
    context.drains.store(false, ordering: .releasing)
    group.notifyDirectly { (ear: any Listener) in ear.hear("y") }
    #expect(context.useCount == 0)
    #expect(group.entryCount == 1)
    #expect(log.entries == ["ear x", "ear y"])
  }

  @Test("an observer whose context has ended is removed")
  func endedContext() {
    let (group, context) = (ObserverGroup(), HeldContext())
    let ear = Ear("ear", Log())
    group.add(ear) { context.used() }
    context.hasEnded.store(true, ordering: .releasing)
    group.notify { (ear: any Listener) in ear.hear("x") }
    #expect(group.entryCount == 0)
    #expect(context.useCount == 0)
  }
}
