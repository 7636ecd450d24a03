// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventDrivenSwift
import EventCoreTestSupport
import Testing

@Suite("Keyed observers")
struct KeyedObservableTests {
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case plain, threadSafe, eventThread
    var testDescription: String { rawValue }

    func make() -> any KeyedObservable {
      switch self {
      case .plain: KeyedObservableClass()
      case .threadSafe: KeyedObservableThreadSafeClass()
      case .eventThread: EventThread(on: EventCentral())
      }
    }
  }

  @Test("observers hear of their keys alone, in the order in which they were added", arguments: Kind.allCases)
  func byKey(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    let (a, b, ab, all) = (Ear("a", log), Ear("b", log), Ear("ab", log), Ear("all", log))
    observed.addKeyDirectly("A", a)
    observed.addKeyDirectly("B", b)
    observed.addKeyDirectly("A", ab)
    observed.addKeyDirectly("B", ab)
    observed.addKeyDirectly("A", a)
    (observed as! any Observed).addDirectly(all)
    observed.say("to all")
    #expect(log.take() == ["all to all"])
    observed.say("x", of: "A")
    #expect(log.take() == ["a A:x", "ab A:x"])
    observed.say("y", of: "B")
    #expect(log.take() == ["b B:y", "ab B:y"])
    observed.say("z", of: "C")
    #expect(log.take().isEmpty)
    observed.withKeyedObservers(keys: ["B", "C", "A"]) { (key: String, ear: any Listener) in
      ear.hear(key)
    }
    #expect(log.take() == ["b B", "ab B", "a A", "ab A"])
    observed.removeKeyedObserver(key: "A", ab)
    observed.say("x", of: "A")
    observed.say("x", of: "B")
    #expect(log.take() == ["a A:x", "b B:x", "ab B:x"])
  }

  @Test("many observers and many keys may be added and removed at once", arguments: Kind.allCases)
  func arrays(kind: Kind) async {
    // All are added on another thread, and so called on one listener thread, in order, or directly.
    await offThePool {
      let observed = kind.make()
      let log = Log<String>()
      let ears = [Ear("a", log), Ear("b", log)]
      observed.addKeyedObserver(keys: [1, 2], ears)
      observed.addKeyedObserver(keys: [3, 4], ears[0])
      observed.addKeyedObserver(key: 5, ears)
      for key in 1...5 { observed.say("x", of: key) }
      let heard = ["a 1:x", "b 1:x", "a 2:x", "b 2:x", "a 3:x", "a 4:x", "a 5:x", "b 5:x"]
      #expect(log.entries(atLeast: 8) == heard)
      observed.removeKeyedObserver(keys: [1, 2], ears)
      observed.removeKeyedObserver(keys: [3, 4], ears[0])
      observed.removeKeyedObserver(key: 5, ears)
      for key in 1...5 { observed.say("y", of: key) }
      // This observer is called after the others would have been.
      let last = Ear("last", log)
      observed.addKeyedObserver(key: 5, [last])
      observed.say("z", of: 5)
      #expect(log.entries(atLeast: 9) == heard + ["last 5:z"])
    }
  }

  @Test("keys of different types live side by side", arguments: Kind.allCases)
  func keyTypes(kind: Kind) {
    struct Model: Hashable, Sendable { var id: Int }
    let observed = kind.make()
    let log = Log<String>()
    let ear = Ear("ear", log)
    observed.addKeyDirectly("1", ear)
    observed.addKeyDirectly(Model(id: 1), ear)
    observed.say("x", of: 1)
    #expect(log.take().isEmpty)
    observed.say("x", of: "1")
    observed.say("x", of: Model(id: 1))
    #expect(log.take() == ["ear 1:x", "ear Model(id: 1):x"])
  }

  @Test("keys with equal hash values are told apart", arguments: Kind.allCases)
  func collisions(kind: Kind) {
    struct Key: Hashable, Sendable, CustomStringConvertible {
      var number: Int
      var description: String { "\(number)" }
      func hash(into hasher: inout Hasher) {}
    }
    let observed = kind.make()
    let log = Log<String>()
    let ears = (0..<5).map { Ear("\($0)", log) }
    for (number, ear) in ears.enumerated() { observed.addKeyDirectly(Key(number: number), ear) }
    observed.removeKeyedObserver(key: Key(number: 2), ears[2])
    for number in 0..<5 { observed.say("x", of: Key(number: number)) }
    #expect(log.take() == ["0 0:x", "1 1:x", "3 3:x", "4 4:x"])
    observed.addKeyDirectly(Key(number: 2), ears[0])
    observed.say("x", of: Key(number: 2))
    #expect(log.take() == ["0 2:x"])
  }

  @Test("a key's hash and equality may use the observable object", arguments: Kind.allCases)
  func keysThatComeBack(kind: Kind) {
    final class Key: Hashable, @unchecked Sendable {
      // A constant, which one thread uses.
      let observed: any KeyedObservable
      init(_ observed: any KeyedObservable) { self.observed = observed }
      static func == (left: Key, right: Key) -> Bool {
        left.observed.say("equal", of: 0)
        return true
      }
      func hash(into hasher: inout Hasher) { observed.say("hash", of: 0) }
    }
    let observed = kind.make()
    let log = Log<String>()
    let (watcher, ear) = (Ear("watcher", log), Ear("ear", log))
    observed.addKeyDirectly(0, watcher)
    observed.addKeyDirectly(Key(observed), ear)
    log.append("added")
    observed.withKeyedObservers(key: Key(observed)) { (_: Key, ear: any Listener) in ear.hear("x") }
    #expect(log.entries.first == "watcher 0:hash")
    #expect(log.entries.last == "ear x")
    observed.removeKeyedObserver(key: Key(observed), ear)
  }

  @Test("a callback may add and remove observers of its key", arguments: Kind.allCases)
  func changesInside(kind: Kind) {
    let observed = kind.make()
    let log = Log<String>()
    let late = Ear("late", log)
    var once: Ear!
    once = Ear("once", log) { [unowned observed] in
      observed.removeKeyedObserver(key: "k", once)
      observed.addKeyDirectly("k", late)
    }
    observed.addKeyDirectly("k", once!)
    observed.say("1", of: "k")
    observed.say("2", of: "k")
    #expect(log.entries == ["once k:1", "late k:2"])
    once = nil
  }
}

extension KeyedObservable {
  /// For observers that are called directly whatever the caller's context.
  func addKeyDirectly<Key: Hashable & Sendable>(_ key: Key, _ observer: AnyObject) {
    switch self {
    case let observed as KeyedObservableThreadSafeClass:
      observed.addKeyedObserver(key: key, observer, executeOn: .notifyingThread)
    case let observed as EventThread:
      observed.addKeyedObserver(key: key, observer, executeOn: .notifyingThread)
    default:
      addKeyedObserver(key: key, observer)
    }
  }

  func say<Key: Hashable & Sendable>(_ text: String, of key: Key) {
    withKeyedObservers(key: key) { (key: Key, ear: any Listener) in ear.hear("\(key):\(text)") }
  }
}
