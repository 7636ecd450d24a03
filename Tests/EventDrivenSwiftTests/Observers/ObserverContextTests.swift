// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventDrivenSwift
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Each observer is called where it was added")
struct ObserverContextTests {
  struct Ping: Eventable { var body: @Sendable () -> Void }

  /// Logs in which place it is called.
  final class Placed: Listener, Sendable {
    let log = Log<String>()
    private let place: @Sendable () -> String
    init(_ place: @escaping @Sendable () -> String) { self.place = place }

    /// Waits for `count` calls and returns what it heard. It waits off the cooperative pool, whose
    /// threads tasks and actors need.
    func heard(atLeast count: Int) async -> [String] {
      await offThePool { [log] in _ = log.entries(atLeast: count) }
      return log.entries
    }

    func hear(_ text: String) { log.append("\(place()) \(text)") }
  }

  /// Adds observers in a handler of a thread, where they are called then, and returns when it has.
  private func add(_ observers: [Placed], to observed: EventThread, on home: EventThread) async {
    let added = Gate()
    home.addEventCallback { (ping: Ping) in ping.body() }
    home.queueEvent(
      Ping {
        for observer in observers { observed.addObserver(observer) }
        added.open()
      })
    await offThePool { added.pass() }
  }

  @Test("D10: calls that wait as their thread is drained are made, though another one is refused", arguments: cores)
  func drained(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (observed, home, observer) = (EventThread(on: central), EventThread(on: central), Placed { "home" })
    await add([observer], to: observed, on: home)
    let held = HeldThread(home)
    for number in 0..<3 { observed.say("\(number)") }
    let drain = Task { await home.drain() }
    #expect(await yieldUntil { !home.queueEvent(Ping {}) })
    observed.say("3")
    held.letGo()
    #expect(await drain.value)
    #expect(observer.log.entries == ["home 0", "home 1", "home 2"])
    observed.say("4")
    #expect(observer.log.entries.count == 3)
    observed.cancel()
  }

  @Test(
    "D10, D6: an observer that is added again as its thread is drained gets the calls that wait, until it is removed",
    arguments: cores)
  func drainedAndAddedAgain(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (observed, home) = (EventThread(on: central), EventThread(on: central))
    let (staying, removed) = (Placed { "" }, Placed { "" })
    await add([staying, removed], to: observed, on: home)
    let held = HeldThread(home)
    for number in 0..<3 { observed.say("\(number)") }
    let drain = Task { await home.drain() }
    #expect(await yieldUntil { !home.queueEvent(Ping {}) })
    for observer in [staying, removed] { observed.addObserver(observer, executeOn: .notifyingThread) }
    observed.say("3")
    observed.removeObserver(removed)
    held.letGo()
    #expect(await drain.value)
    #expect(staying.log.entries == [" 3", " 0", " 1", " 2"])
    #expect(removed.log.entries == [" 3"])
    observed.say("4")
    #expect(staying.log.entries.last == " 4")
    observed.cancel()
  }

  @Test("an observer that a handler adds is called on that thread, as one of its events", arguments: cores)
  func eventThread(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (observed, home) = (EventThread(on: central), EventThread(on: central))
    let thread = Atomic<UInt>(0)
    let observer = Placed {
      currentThread() == thread.load(ordering: .relaxed) ? "home" : "elsewhere"
    }
    let added = Gate()
    home.addEventCallback { (ping: Ping) in ping.body() }
    home.queueEvent(
      Ping {
        thread.store(currentThread(), ordering: .relaxed)
        observed.addObserver(observer)
        observed.addKeyedObserver(key: 1, observer)
        added.open()
      })
    await offThePool { added.pass() }
    let held = HeldThread(home)
    for number in 0..<3 {
      observed.say("\(number)")
      observed.say("\(number)", of: 1)
    }
    #expect(observer.log.entries.isEmpty)
    held.letGo()
    #expect(
      await observer.heard(atLeast: 6) == [
        "home 0", "home 1:0", "home 1", "home 1:1", "home 2", "home 1:2",
      ])
    home.cancel()
  }

  @Test("D10: an observer that is called on a thread is removed when the thread ends", arguments: cores)
  func endedThread(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (observed, home) = (EventThread(on: central), EventThread(on: central))
    let observer = Placed { "home" }
    let added = Gate()
    home.addEventCallback { (ping: Ping) in ping.body() }
    home.queueEvent(
      Ping {
        observed.addObserver(observer)
        added.open()
      })
    added.pass()
    home.cancel()
    home.join()
    observed.say("x")
    #expect(observer.log.entries.isEmpty)
    // The observer can be added again, at another place.
    observed.addObserver(observer, executeOn: .notifyingThread)
    observed.say("y")
    #expect(observer.log.entries == ["home y"])
  }

  @Test(
    "D9: an observer whose place has ended can be added again, even if nobody has notified since",
    arguments: cores)
  func addedAgain(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (observed, home) = (EventThread(on: central), EventThread(on: central))
    let log = Log<String>()
    let (ear, other) = (Ear("ear", log), Ear("other", log))
    let added = Gate()
    home.addEventCallback { (ping: Ping) in ping.body() }
    home.queueEvent(
      Ping {
        observed.addObserver(ear)
        observed.addKeyedObserver(key: 1, ear)
        added.open()
      })
    added.pass()
    observed.addObserver(other, executeOn: .notifyingThread)
    home.cancel()
    home.join()
    observed.addObserver(ear, executeOn: .notifyingThread)
    observed.addKeyedObserver(key: 1, ear, executeOn: .notifyingThread)
    // An observer that is added twice is called once.
    observed.addObserver(ear, executeOn: .notifyingThread)
    observed.say("x")
    observed.say("y", of: 1)
    #expect(log.entries == ["other x", "ear x", "ear 1:y"])
    observed.removeObserver(ear)
    observed.say("z")
    #expect(log.entries.last == "other z")
  }

  @Test("D9: an observer whose actor is gone can be added again", arguments: cores)
  func addedAfterActor(core: EventCentral.Core) async {
    actor Home {
      func observe(_ observed: EventThread, _ ear: Ear) { observed.addObserver(ear) }
    }
    let observed = EventThread(on: EventCentral(core: core))
    let log = Log<String>()
    let ear = Ear("ear", log)
    weak var gone: Home?
    do {
      let home = Home()
      gone = home
      await home.observe(observed, ear)
    }
    #expect(await yieldUntil { gone == nil })
    observed.addObserver(ear, executeOn: .notifyingThread)
    observed.say("x")
    #expect(log.entries == ["ear x"])
  }

  @Test("an observer that an actor adds is called on that actor, in order")
  func onActor() async {
    actor Home {
      var heard: [String] = []
      let all = Gate()
      func observe(_ observed: ObservableThreadSafeClass, _ ear: Inner) {
        observed.addObserver(ear)
      }
      func hear(_ text: String) {
        heard.append(text)
        if heard.count == 4 { all.open() }
      }
    }
    final class Inner: Listener, Sendable {
      let home: Home
      init(_ home: Home) { self.home = home }
      func hear(_ text: String) { home.assumeIsolated { $0.hear(text) } }
    }
    let (observed, home) = (ObservableThreadSafeClass(), Home())
    let ear = Inner(home)
    await home.observe(observed, ear)
    for number in 0..<4 { observed.say("\(number)") }
    await offThePool { home.all.pass() }
    #expect(await home.heard == ["0", "1", "2", "3"])
  }

  @MainActor
  @Test("an observer that the MainActor adds is called there")
  func onMainActor() async {
    final class Inner: Listener, Sendable {
      let log = Log<String>()
      func hear(_ text: String) {
        MainActor.assumeIsolated { log.append(text) }
      }
    }
    let observed = ObservableThreadSafeClass()
    let inner = Inner()
    observed.addObserver(inner)
    onThreads(1) { _ in for number in 0..<3 { observed.say("\(number)") } }
    #expect(inner.log.entries.isEmpty)
    #expect(await yieldUntil { inner.log.entries == ["0", "1", "2"] })
  }

  @Test("an observer that a task adds is called in a task of its own, in order")
  func inTask() async {
    let observed = ObservableThreadSafeClass()
    let observer = Placed { withUnsafeCurrentTask { $0 == nil ? "no task" : "task" } }
    await Task.detached { observed.addObserver(observer) }.value
    runThread { for number in 0..<5 { observed.say("\(number)") } }
    #expect(await observer.heard(atLeast: 5) == (0..<5).map { "task \($0)" })
  }

  @Test("an observer that another thread adds is called on the listener thread")
  func elsewhere() async {
    let central = EventCentral()
    let observed = EventThread(on: central)
    let observer = Placed { "\(currentThread())" }
    let own = Atomic<UInt>(0)
    onThreads(1) { _ in
      own.store(currentThread(), ordering: .relaxed)
      observed.addObserver(observer)
      observed.say("x")
    }
    let heard = await observer.heard(atLeast: 1)
    // Another listener of the central tells which thread that is.
    struct Which: Eventable {}
    let which = Log<UInt>()
    let handle = Which.addListener(nil, executeOn: .listenerThread, on: central) { _ in
      which.append(currentThread())
    }
    Which().queue(on: central)
    await offThePool { _ = which.entries(atLeast: 1) }
    handle.remove()
    #expect(heard == which.entries.map { "\($0) x" })
    #expect(which.entries != [own.load(ordering: .relaxed)])
  }

  @Test("an observer may be called on a dispatch queue; what waits there is freed with its removal")
  func onQueue() async {
    let queue = DispatchQueue(label: "observers")
    let mark = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: mark, value: true)
    let observed = KeyedObservableThreadSafeClass()
    let observer = Placed { DispatchQueue.getSpecific(key: mark) == true ? "queue" : "elsewhere" }
    observed.addObserver(observer, executeOn: .dispatchQueue(queue))
    observed.addKeyedObserver(key: 1, observer, executeOn: .dispatchQueue(queue))
    for number in 0..<3 { observed.say("\(number)") }
    observed.say("x", of: 1)
    let heard = await observer.heard(atLeast: 4)
    #expect(heard.sorted() == ["queue 0", "queue 1", "queue 1:x", "queue 2"])

    let lifetime = Lifetime()
    // Waits for the end of the job that called it: it could still take the next call otherwise.
    queue.sync {}
    queue.suspend()
    do {
      let token = lifetime.token()
      observed.withObservers { (listener: any Listener) in listener.hear("late \(token)") }
    }
    #expect(lifetime.alive == 1)
    observed.removeKeyedObserver(key: 1, observer)
    observed.removeObserver(observer)
    #expect(lifetime.waitUntilNone())
    queue.resume()
    queue.sync {}
    #expect(observer.log.entries.count == 4)
  }

  @Test("the place may be chosen for several observers or several keys at once")
  func severalByChoice() {
    let thread = EventThread(on: EventCentral())
    let object = KeyedObservableThreadSafeClass()
    let log = Log<String>()
    let ears = [Ear("a", log), Ear("b", log)]
    thread.addObserver(ears, executeOn: .notifyingThread)
    thread.addKeyedObserver(key: 1, ears, executeOn: .notifyingThread)
    thread.addKeyedObserver(keys: [2, 3], ears[0], executeOn: .notifyingThread)
    thread.addKeyedObserver(keys: [4, 5], ears, executeOn: .notifyingThread)
    object.addObserver(ears, executeOn: .notifyingThread)
    object.addKeyedObserver(key: 1, ears, executeOn: .notifyingThread)
    object.addKeyedObserver(keys: [2, 3], ears[0], executeOn: .notifyingThread)
    object.addKeyedObserver(keys: [4, 5], ears, executeOn: .notifyingThread)
    for observed in [thread, object] as [any KeyedObservable] {
      observed.say("x")
      // The observers are called before the notification returns.
      #expect(log.take() == ["a x", "b x"])
      for (key, expected) in [(1, "ab"), (2, "a"), (3, "a"), (4, "ab"), (5, "ab"), (6, "")] {
        observed.say("x", of: key)
        #expect(log.take() == expected.map { "\($0) \(key):x" })
      }
    }
  }

  @Test("D2: each observer hears each thread's notifications in order", arguments: cores)
  func orderOfEach(core: EventCentral.Core) async {
    struct Note: Sendable { let producer: Int, number: Int }
    final class Collecting: Sendable {
      let log = Log<Note>()
      func note(_ producer: Int, _ number: Int) {
        log.append(Note(producer: producer, number: number))
      }
    }
    let central = EventCentral(core: core)
    let observed = EventThread(on: central)
    let observers = (0..<3).map { _ in Collecting() }
    let queue = DispatchQueue(label: "observers", attributes: .concurrent)
    observed.addObserver(observers[0], executeOn: .dispatchQueue(queue))
    observed.addObserver(observers[1], executeOn: .dispatchQueue(queue))
    onThreads(1) { _ in observed.addObserver(observers[2]) }
    let count = 300
    onThreads(3) { producer in
      for number in 0..<count {
        observed.withObservers { (observer: Collecting) in observer.note(producer, number) }
      }
    }
    for observer in observers {
      await offThePool { _ = observer.log.entries(atLeast: 3 * count) }
      let notes = observer.log.entries
      #expect(notes.count == 3 * count)
      for producer in 0..<3 {
        #expect(notes.filter { $0.producer == producer }.map(\.number) == Array(0..<count))
      }
    }
  }
}
