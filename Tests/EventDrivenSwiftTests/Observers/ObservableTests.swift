// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventDrivenSwift
import EventCoreTestSupport
import Testing

/// What the four classes and the event thread have in common, each with observers that are called
/// directly.
@Suite("Observers that are called directly")
struct ObservableTests {
  /// How a test makes an object that can be observed.
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case plain, threadSafe, keyed, keyedThreadSafe, eventThread
    var testDescription: String { rawValue }

    func make() -> any Observed {
      switch self {
      case .plain: ObservableClass()
      case .threadSafe: ObservableThreadSafeClass()
      case .keyed: KeyedObservableClass()
      case .keyedThreadSafe: KeyedObservableThreadSafeClass()
      case .eventThread: EventThread(on: EventCentral())
      }
    }
  }

  @Test("observers are called once, in the order in which they were added", arguments: Kind.allCases)
  func inOrderAndOnce(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    for count in [0, 1, 2, 3, 9] {
      let observers = (0..<count).map { Ear("\($0)", log) }
      for observer in observers + observers.reversed() {
        observed.addDirectly(observer)
      }
      observed.say("hello")
      #expect(log.take() == (0..<count).map { "\($0) hello" })
      observed.removeObserver(observers)
      observed.say("hello")
      #expect(log.take().isEmpty)
    }
  }

  @Test("many observers may be added and removed at once", arguments: Kind.allCases)
  func arrays(kind: Kind) async {
    // All are added on another thread, and so called on one listener thread, in order, or directly.
    await offThePool {
      let observed = kind.make()
      let log = Log<String>()
      let ears = [Ear("a", log), Ear("b", log), Ear("c", log)]
      let listeners: [any Listener] = ears
      observed.addObserver(listeners)
      observed.say("1")
      #expect(log.entries(atLeast: 3) == ["a 1", "b 1", "c 1"])
      observed.removeObserver(ears)
      observed.say("2")
      // This observer is called after the others would have been.
      let last = Ear("last", log)
      observed.addObserver([last])
      observed.say("3")
      #expect(log.entries(atLeast: 4) == ["a 1", "b 1", "c 1", "last 3"])
    }
  }

  @Test("D11: only observers of the type that is asked for are called", arguments: Kind.allCases)
  func byType(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    let (ear, both, eye) = (Ear("ear", log), Both("both", log), Eye("eye", log))
    for observer in [ear, eye, both] as [AnyObject] { observed.addDirectly(observer) }
    for _ in 0..<3 {
      observed.say("hi")
      #expect(log.take() == ["ear hi", "both hi"])
      observed.withObservers { (observer: any Watcher) in observer.watch("sun") }
      #expect(log.take() == ["eye sun", "both sun"])
      observed.withObservers { (observer: Eye) in log.append("class \(observer.name)") }
      #expect(log.take() == ["class eye"])
      observed.withObservers { (observer: any Listener & Watcher) in observer.watch("two") }
      #expect(log.take() == ["both two"])
      observed.withObservers { (observer: any Named) in log.append("open \(observer.name)") }
      #expect(log.take() == ["open ear", "open eye", "open both"])
      observed.withObservers { (_: AnyObject) in log.append("any") }
      #expect(log.take() == ["any", "any", "any"])
      observed.withObservers { (_: String) in log.append("never") }
      #expect(log.take().isEmpty)
    }
  }

  @Test("types that are not a plain reference to the observer work too", arguments: Kind.allCases)
  func oddTypes(kind: Kind) {
    final class Failing: Error, Hashable, Sendable {
      let code = 7
      static func == (left: Failing, right: Failing) -> Bool { left === right }
      func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }
    let lifetime = Lifetime()
    let observed = kind.make()
    let log = Log<String>()
    do {
      final class Held: Sendable {
        let token: Lifetime.Token
        init(_ token: Lifetime.Token) { self.token = token }
      }
      let failing = Failing()
      let held = Held(lifetime.token())
      observed.addDirectly(failing)
      observed.addDirectly(held)
      for _ in 0..<3 {
        observed.withObservers { (error: any Error) in
          log.append("error \((error as! Failing).code)")
        }
        observed.withObservers { (key: AnyHashable) in
          log.append("key \((key.base as! Failing).code)")
        }
        observed.withObservers { (one: Failing?) in log.append("optional \(one!.code)") }
        observed.withObservers { (any: Any) in log.append(any is Held ? "held" : "failing") }
        #expect(log.take() == ["error 7", "key 7", "optional 7", "failing", "held"])
      }
    }
    #expect(lifetime.alive == 0)
    observed.withObservers { (_: any Error) in log.append("error") }
    observed.withObservers { (_: Any) in log.append("any") }
    #expect(log.take().isEmpty)
  }

  // MARK: Lifetimes

  @Test("D9: an observer is not retained, and is not called once it is gone", arguments: Kind.allCases)
  func weak(kind: Kind) {
    let observed = kind.make()
    let (log, lifetime) = (Log<String>(), Lifetime())
    var ears = (0..<5).map { Ear("\($0)", log, lifetime.token()) }
    for ear in ears { observed.addDirectly(ear) }
    observed.say("all")
    #expect(log.take() == ["0 all", "1 all", "2 all", "3 all", "4 all"])
    ears.remove(at: 2)
    #expect(lifetime.alive == 4)
    observed.say("some")
    #expect(log.take() == ["0 some", "1 some", "3 some", "4 some"])
    ears = []
    #expect(lifetime.alive == 0)
    observed.say("none")
    #expect(log.take().isEmpty)
  }

  @Test(
    "a new object in the place of a gone one is called, and called last", arguments: Kind.allCases)
  func reusedMemory(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    var first: Ear? = Ear("first", log)
    let place = ObjectIdentifier(first!)
    observed.addDirectly(first!)
    let second = Ear("second", log)
    observed.addDirectly(second)
    first = nil
    // The allocator gives the memory of the first object to one of the next.
    var others: [Ear] = []
    for number in 0..<200 {
      others.append(Ear("\(number)", log))
      observed.addDirectly(others[number])
      if ObjectIdentifier(others[number]) == place { break }
    }
    observed.say("x")
    #expect(log.take() == ["second x"] + others.indices.map { "\($0) x" })
  }

  @Test("an observer may remove itself as it ends", arguments: Kind.allCases)
  func removalInDeinit(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    do {
      let leaving = Leaving(observed)
      observed.addDirectly(leaving)
      observed.say("x")
    }
    let ear = Ear("left", log)
    observed.addDirectly(ear)
    observed.say("y")
    #expect(log.entries == ["left y"])
  }

  @Test(
    "an observer that its own callback releases ends with the callback",
    arguments: Kind.allCases)
  func endsInsideCallback(kind: Kind) {
    final class Box { var ear: Ear? }
    let observed = kind.make()
    let (log, lifetime) = (Log<String>(), Lifetime())
    let box = Box()
    box.ear = Ear("short", log, lifetime.token()) { [box] in box.ear = nil }
    observed.addDirectly(box.ear!)
    observed.say("1")
    #expect(lifetime.alive == 0)
    observed.say("2")
    #expect(log.entries == ["short 1"])
  }

  // MARK: Changes inside a callback

  @Test("a callback may remove itself, and others that are still to come", arguments: Kind.allCases)
  func removalInside(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    let third = Ear("3", log)
    var first: Ear!
    first = Ear("1", log) { [unowned observed] in
      observed.removeObserver(third)
      observed.removeObserver(first)
    }
    let second = Ear("2", log)
    for ear in [first!, second, third] { observed.addDirectly(ear) }
    observed.say("x")
    #expect(log.take() == ["1 x", "2 x"])
    observed.say("y")
    #expect(log.take() == ["2 y"])
    first = nil
  }

  @Test(
    "an observer that is added inside a callback is called from the next notification on",
    arguments: Kind.allCases)
  func additionInside(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    let late = Ear("late", log)
    let first = Ear("first", log) { [unowned observed] in observed.addDirectly(late) }
    observed.addDirectly(first)
    observed.say("1")
    #expect(log.take() == ["first 1"])
    observed.say("2")
    #expect(log.take() == ["first 2", "late 2"])
  }

  @Test("D7: a callback may notify, and the observers are called inside it", arguments: Kind.allCases)
  func nested(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    let eye = Eye("eye", log)
    let ear = Ear("ear", log) { [unowned observed] in
      observed.withObservers { (observer: any Watcher) in observer.watch("inner") }
    }
    observed.addDirectly(ear)
    observed.addDirectly(eye)
    observed.say("outer")
    #expect(log.entries == ["ear outer", "eye inner"])
  }

  @Test("D12: a place for an observer that is called directly traps")
  func placeForDirect() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      KeyedObservableClass().addKeyedObserver(key: 1, Lifetime(), executeOn: .notifyingThread)
    }
    expectMessage(result, "leave executeOn: out, or inherit from ObservableThreadSafeClass")
  }
}
