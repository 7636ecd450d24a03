// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("D9, D10: the end of a thread")
struct EndingTests {
  struct Ping: Eventable { var number = 0 }
  struct Carrying: Eventable { var token: Lifetime.Token }

  /// An event that stands in its end, which comes right after its last handler.
  struct Standing: Eventable {
    private final class End: Sendable {
      let (entered, leave): (Gate, Gate)
      init(_ entered: Gate, _ leave: Gate) { (self.entered, self.leave) = (entered, leave) }
      deinit {
        entered.open()
        leave.pass()
      }
    }
    private let end: End
    init(entered: Gate, leave: Gate) { end = End(entered, leave) }
  }

  @Test("D6: the last call has been counted when removeAndWait() returns", arguments: cores)
  func lastCallIsCounted(core: EventCentral.Core) {
    let (central, entered, leave) = (EventCentral(core: core), Gate(), Gate())
    let thread = EventThread(on: central)
    let handle = thread.addEventCallback(
      { (_: Standing) in }, interestedIn: .custom, customFilter: { _, _, _ in true })
    Standing(entered: entered, leave: leave).queue(on: central)
    entered.pass()
    handle.removeAndWait()
    #expect(thread.statistics.delivered == 1)
    leave.open()
    let handles = Log<any EventListenerHandling>()
    let pool = EventPool<EventThread>(capacity: 1, balancer: EventPoolRoundRobinBalancer(), on: central) { _ in
      let thread = EventThread()
      handles.append(thread.addEventCallback { (_: Standing) in })
      return thread
    }
    Standing(entered: entered, leave: leave).queue(on: central)
    entered.pass()
    handles.entries[0].removeAndWait()
    #expect(pool.statistics.delivered == 1)
    leave.open()
    pool.cancel()
  }

  @Test("D10: a cancel in the middle of a batch frees the rest of it", arguments: cores)
  func cancelInBatch(core: EventCentral.Core) {
    struct Item: Eventable { var number: Int }
    for (size, last) in [(2, 0), (64, 0), (64, 30), (64, 62), (200, 70)] {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let log = Log<Int>()
      thread.addEventCallback { [unowned thread] (item: Item) in
        log.append(item.number)
        if item.number == last { thread.cancel() }
      }
      // So that all events are there before the first is handled, and none comes to an ended thread.
      let held = HeldThread(thread)
      #expect((0..<size).map(Item.init).queue(on: central) == size)
      held.letGo()
      thread.join()
      #expect(log.entries == Array(0...last))
      #expect(thread.eventCount == 0)
      // One event more was delivered: the one that held the thread.
      #expect(
        thread.statistics
          == .init(delivered: UInt64(last + 2), skipped: 0, cancelled: UInt64(size - last - 1)))
    }
  }

  @Test(
    "D10: cancel finishes the handler that runs, and frees and counts what waits", arguments: cores)
  func cancelCounts(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let (lifetime, log) = (Lifetime(), Log<Int>())
    thread.addEventCallback { (_: Carrying) in log.append(1) }
    let held = HeldThread(thread)
    for lane in TestLane.all {
      for _ in 0..<20 { Carrying(token: lifetime.token()).dispatch(lane, on: central) }
    }
    thread.cancel()
    #expect(Carrying(token: lifetime.token()).queue(on: central) == 0)
    held.letGo()
    thread.join()
    #expect(log.entries.isEmpty)
    #expect(lifetime.alive == 0)
    #expect(thread.statistics == .init(delivered: 1, skipped: 0, cancelled: 200))
  }

  @Test("D10: drain handles what waits first", arguments: cores)
  func drainHandlesFirst(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    thread.addEventCallback { (event: Ping) in log.append(event.number) }
    let held = HeldThread(thread)
    for number in 0..<1000 { Ping(number: number).queue(on: central) }
    runThread { held.letGo() }
    #expect(thread.drain(until: .now() + .seconds(60)))
    #expect(log.entries == Array(0..<1000))
    #expect(thread.statistics.cancelled == 0)
  }

  // test                                   others
  // dispatches 0..<10                      dispatch on and on, until they are refused
  // drains: true, since those ten were handled
  @Test("D10: events that others dispatch during a drain do not make it fail", arguments: cores)
  func drainUnderFire(core: EventCentral.Core) {
    for _ in 0..<shortened(200) {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let (log, accepted, going) = (Log<Int>(), Log<Int>(), Log<Int>())
      thread.addEventCallback { (event: Ping) in
        if event.number >= 0 { log.append(event.number) }
      }
      runThread {
        onThreads(2) { _ in
          var count = 0
          while Ping(number: -1).queue(on: central) == 1 {
            count += 1
            if count == 1 { going.append(0) }
          }
          accepted.append(count)
        }
      }
      _ = going.entries(atLeast: 2)
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      #expect(thread.drain())
      #expect(log.entries == Array(0..<10))
      let sum = UInt64(accepted.entries(atLeast: 2).reduce(10, +))
      #expect(thread.statistics.delivered + thread.statistics.cancelled == sum)
    }
  }

  @Test("D10: a drain whose time is over frees the rest", arguments: cores)
  func drainGivesUp(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Ping) in }
    let held = HeldThread(thread)
    for _ in 0..<10 { Ping().queue(on: central) }
    #expect(!thread.drain(until: .now()))
    held.letGo()
    thread.join()
    #expect(thread.statistics == .init(delivered: 1, skipped: 0, cancelled: 10))
  }

  @Test(
    "D10: an idle thread wakes for cancel at once, whatever it does while it waits",
    arguments: cores, [EventWaitStrategy.park, .spinThenPark(.milliseconds(1)), .yield, .spin])
  func idleThreadWakes(core: EventCentral.Core, strategy: EventWaitStrategy) {
    let thread = EventThread(on: EventCentral(core: core), waitStrategy: strategy)
    let log = Log<Int>()
    thread.addEventCallback { (event: Ping) in log.append(event.number) }
    for number in 0..<3 {
      thread.queueEvent(Ping(number: number))
      _ = log.entries(atLeast: number + 1)
    }
    thread.cancel()
    thread.join()
    #expect(log.entries == [0, 1, 2])
  }

  @Test(
    "D12: posting to a cancelled thread is answered with false, and leaks nothing", arguments: cores)
  func postingToACancelledThread(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let lifetime = Lifetime()
    #expect(!thread.queueEvent(Ping()))
    thread.addEventCallback { (_: Carrying) in }
    #expect(thread.stackEvent(Carrying(token: lifetime.token())))
    thread.cancel()
    thread.cancel()
    #expect(!thread.queueEvent(Carrying(token: lifetime.token())))
    thread.join()
    #expect(lifetime.alive == 0)
    #expect(thread.eventCount == 0)
  }

  @Test(
    "D9: releasing the last reference ends an idle thread and frees everything", arguments: cores)
  func releasingEndsAnIdleThread(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let central = EventCentral(core: core)
    for _ in 0..<50 {
      let owner = Owner(lifetime.token(), on: central)
      weak let gone = owner
      Ping().queue(on: central)
      #expect(gone != nil)
    }
    #expect(lifetime.waitUntilNone())
    #expect(waitUntil { Ping().queue(on: central) == 0 })
  }

  @Test("D9: the last reference may go inside a handler of the thread itself", arguments: cores)
  func releasingInsideAHandler(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let central = EventCentral(core: core)
    let log = Log<String>()
    let holder = Holder()
    holder.thread = Owner(lifetime.token(), on: central) { event in
      log.append("begin \(event.number)")
      // The handler's own object goes: it must live until the handler returns.
      holder.thread = nil
      log.append("end \(event.number)")
    }
    do {
      let held = HeldThread(holder.thread!)
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      held.letGo()
    }
    #expect(lifetime.waitUntilNone())
    #expect(log.entries == ["begin 0", "end 0"])
  }

  @Test("D9: a bound method keeps its thread alive until cancel", arguments: cores)
  func boundMethodRetains(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let central = EventCentral(core: core)
    let log = Log<Int>()
    do {
      let owner = BoundOwner(lifetime.token(), log, on: central)
      #expect(owner.central === central)
    }
    #expect(Ping(number: 5).queue(on: central) == 1)
    #expect(log.entries(atLeast: 1) == [5])
    #expect(lifetime.alive == 1)
    Ping(number: -1).queue(on: central)
    #expect(lifetime.waitUntilNone())
  }

  /// Registers an unapplied method, which retains nothing.
  final class Owner: EventThread, @unchecked Sendable {
    // Constants of Sendable types.
    let token: Lifetime.Token
    let body: (@Sendable (Ping) -> Void)?

    init(
      _ token: Lifetime.Token, on central: EventCentral,
      body: (@Sendable (Ping) -> Void)? = nil
    ) {
      self.token = token
      self.body = body
      super.init(on: central)
    }

    @available(*, unavailable, message: "needs a token")
    required init() { preconditionFailure("needs a token") }

    override func registerEventListeners() { addEventCallback(Owner.onPing) }

    func onPing(_ event: Ping) {
      body?(event)
      withExtendedLifetime(token) {}
    }
  }

  /// Registers a bound method, as the documents of EventDrivenSwift print it.
  final class BoundOwner: EventThread, @unchecked Sendable {
    // Constants of Sendable types.
    let token: Lifetime.Token
    let log: Log<Int>

    init(_ token: Lifetime.Token, _ log: Log<Int>, on central: EventCentral) {
      self.token = token
      self.log = log
      super.init(on: central)
    }

    @available(*, unavailable, message: "needs a token")
    required init() { preconditionFailure("needs a token") }

    override func registerEventListeners() { addEventCallback(onPing, forEventType: Ping.self) }

    func onPing(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {
      log.append(event.number)
      if event.number < 0 { cancel() }
    }
  }

  final class Holder: @unchecked Sendable {
    // Written by the test before the first event, then by the handler only.
    var thread: Owner?
  }

  @Test("D10: a thread may be cancelled in registerEventListeners, and joined", arguments: cores)
  func endedBeforeItBegins(core: EventCentral.Core) {
    final class Ending: EventThread, @unchecked Sendable {
      // A constant of a Sendable type.
      let waited = Gate()

      override func registerEventListeners() {
        addEventCallback { (_: Ping) in }.removeAndWait()
        cancel()
        runThread { [self] in
          join()
          waited.open()
        }
      }
    }
    let thread = Ending(on: EventCentral(core: core))
    #expect(thread.waited.pass())
    #expect(thread.drain())
  }
}
