// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventDrivenSwift
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Observers and many threads")
struct ObserverRaceTests {
  final class Counting: Listener, Sendable {
    let calls = Atomic<Int>(0)
    let isAdded = Atomic<Bool>(false)
    let token: Lifetime.Token?
    init(_ token: Lifetime.Token? = nil) { self.token = token }
    func hear(_ text: String) { calls.wrappingAdd(1, ordering: .relaxed) }
  }

  @Test(
    "D4: while threads add, remove and notify, an observer that stays hears every notification")
  func churn() {
    let observed = KeyedObservableThreadSafeClass()
    let lifetime = Lifetime()
    let staying = (0..<3).map { _ in Counting() }
    observed.addDirectly(staying[0])
    observed.addKeyDirectly(0, staying[1])
    observed.addDirectly(staying[2])
    let rounds = 300 * stressFactor
    onThreads(4) { index in
      for round in 0..<rounds {
        if index < 2 {
          observed.say("x")
          observed.say("x", of: round % 3)
        } else {
          let coming = Counting(lifetime.token())
          observed.addDirectly(coming)
          observed.addKeyDirectly(round % 3, coming)
          if round.isMultiple(of: 2) {
            observed.removeObserver(coming)
            observed.removeKeyedObserver(key: round % 3, coming)
          }
        }
      }
    }
    #expect(staying[0].calls.load(ordering: .relaxed) == 2 * rounds)
    #expect(staying[1].calls.load(ordering: .relaxed) == 2 * ((rounds + 2) / 3))
    #expect(staying[2].calls.load(ordering: .relaxed) == 2 * rounds)
    #expect(lifetime.waitUntilNone())
  }

  @Test("D6: no call begins after removeObserver has returned")
  func nothingAfterRemoval() {
    let observed = ObservableThreadSafeClass()
    let isDone = Atomic<Bool>(false)
    final class Strict: Listener, Sendable {
      let isRemoved = Atomic<Bool>(false)
      let late = Atomic<Int>(0)
      func hear(_ text: String) {
        if isRemoved.load(ordering: .sequentiallyConsistent) {
          late.wrappingAdd(1, ordering: .relaxed)
        }
      }
    }
    let strict = (0..<300).map { _ in Strict() }
    onThreads(2) { index in
      if index == 0 {
        for observer in strict {
          observed.addDirectly(observer)
          observed.removeObserver(observer)
          // A call that began before the removal may find the flag set. The next notification begins
          // afterwards, and must not call the observer.
          observer.isRemoved.store(true, ordering: .sequentiallyConsistent)
        }
        isDone.store(true, ordering: .releasing)
      } else {
        while !isDone.load(ordering: .acquiring) { observed.say("x") }
      }
    }
    // At most the one call that had begun.
    let late = strict.map { $0.late.load(ordering: .relaxed) }
    #expect(late.allSatisfy { $0 <= 1 })
    observed.say("y")
    #expect(strict.map { $0.late.load(ordering: .relaxed) } == late)
  }

  @Test("D9: observers may end on one thread while others notify")
  func endingWhileNotified() {
    let observed = ObservableThreadSafeClass()
    let (log, lifetime) = (Log<String>(), Lifetime())
    let isDone = Atomic<Bool>(false)
    let rounds = 1_000 * stressFactor
    onThreads(3) { index in
      if index == 0 {
        for _ in 0..<rounds {
          let ears = (0..<3).map { Ear("\($0)", log, lifetime.token()) }
          for ear in ears { observed.addDirectly(ear) }
        }
        isDone.store(true, ordering: .releasing)
      } else {
        while !isDone.load(ordering: .acquiring) {
          observed.say("x")
          observed.withObservers { (ear: Ear) in ear.hear("y") }
          observed.withObservers { (ear: any Named) in _ = ear.name }
        }
      }
    }
    observed.say("z")
    #expect(log.entries.allSatisfy { !$0.hasSuffix("z") })
    #expect(lifetime.alive == 0)
  }

  @Test("many threads may add the first observer of an event thread at once", arguments: cores)
  func firstObserver(core: EventCentral.Core) {
    for _ in 0..<50 {
      let thread = EventThread(on: EventCentral(core: core))
      let observers = (0..<4).map { _ in Counting() }
      onThreads(4) { index in
        thread.addDirectly(observers[index])
        thread.addKeyDirectly("k", observers[index])
      }
      thread.say("x")
      thread.say("x", of: "k")
      #expect(observers.allSatisfy { $0.calls.load(ordering: .relaxed) == 2 })
    }
  }
}
