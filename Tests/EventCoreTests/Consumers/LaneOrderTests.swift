// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("D1 to D3: the order of lanes")
struct LaneOrderTests {
  struct Numbered: Eventable { var number: Int }

  @Test(
    "D1: an urgent event overtakes a backlog that is already being worked off", arguments: cores)
  func urgentOvertakesBacklog(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    let (reached, goOn) = (Gate(), Gate())
    thread.addEventCallback { (event: Numbered) in
      log.append(event.number)
      if event.number == 250 {
        reached.open()
        goOn.pass()
      }
    }
    let held = HeldThread(thread)
    for number in 0..<500 { Numbered(number: number).queue(on: central) }
    held.letGo()
    reached.pass()
    Numbered(number: 1000).queue(priority: .highest, on: central)
    Numbered(number: 1001).stack(priority: .lowest, on: central)
    goOn.open()
    let expected = Array(0...250) + [1001, 1000] + Array(251..<500)
    #expect(log.entries(atLeast: 502) == expected)
    thread.cancel()
  }

  @Test(
    "D1 D3: a stack that overtakes a queue at work is taken to its end before the queue goes on",
    arguments: cores)
  func stackOvertakesQueueToItsEnd(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    let (reached, goOn) = (Gate(), Gate())
    thread.addEventCallback { (event: Numbered) in
      log.append(event.number)
      if event.number == 10 {
        reached.open()
        goOn.pass()
      }
      // While the stack is worked off: one more on it, and one that comes sooner still.
      if event.number == 1002 {
        Numbered(number: 2000).stack(priority: .low, on: central)
        Numbered(number: 3000).stack(priority: .high, on: central)
      }
    }
    let held = HeldThread(thread)
    for number in 0..<100 { Numbered(number: number).queue(on: central) }
    held.letGo()
    reached.pass()
    for number in 1000..<1004 { Numbered(number: number).stack(priority: .low, on: central) }
    goOn.open()
    let expected = Array(0...10) + [1003, 1002, 3000, 2000, 1001, 1000] + Array(11..<100)
    #expect(log.entries(atLeast: expected.count) == expected)
    thread.cancel()
  }

  @Test("D1: each take chooses anew, whatever lane the consumer relied on", arguments: cores)
  func everyTakeChoosesAnew(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    var random = SeededRandom(seed: announcedSeed("LaneOrderTests.everyTakeChoosesAnew, \(core)"))
    // Each handled event dispatches one or two more, on the lanes of a script that the model and the
    // thread share.
    let lanes = (0..<20_000).map { _ in
      Int.random(in: 0..<10, using: &random) < 6 ? 7 : Int.random(in: 0..<10, using: &random)
    }
    let follow = (0..<20_000).map { _ in Int.random(in: 0...2, using: &random) }
    let log = Log<Int>()
    final class Script: @unchecked Sendable {
      // Only the event thread's handler touches it.
      var next = 1
    }
    let script = Script()
    thread.addEventCallback { (event: Numbered) in
      log.append(event.number)
      for _ in 0..<max(1, follow[event.number]) where script.next < lanes.count {
        Numbered(number: script.next).dispatch(TestLane.all[lanes[script.next]], on: central)
        script.next += 1
      }
    }
    Numbered(number: 0).dispatch(TestLane.all[lanes[0]], on: central)
    var model = LaneModel<Int>()
    var expected: [Int] = []
    var next = 1
    model.post(0, lane: lanes[0])
    while let number = model.take() {
      expected.append(number)
      for _ in 0..<max(1, follow[number]) where next < lanes.count {
        model.post(next, lane: lanes[next])
        next += 1
      }
    }
    #expect(log.entries(atLeast: expected.count) == expected)
    thread.cancel()
  }

  @Test(
    "D1 to D3: all sequences of 6 posts over the ten lanes are taken in the order of the rules",
    arguments: cores)
  func allOrdersOfSixPosts(core: EventCentral.Core) {
    struct Go: Eventable { var sequence: Int }
    struct Post: Eventable { var index: UInt8 }
    // The thread posts a sequence to itself, handles it, and goes on to the next one. It does so a
    // million times in a debug build, and therefore without arrays.
    final class State: @unchecked Sendable {
      // Only the event thread's handlers touch it, and the test after they are done.
      var sequence = 0
      var count = 0
      let lanes = UnsafeMutablePointer<UInt8>.allocate(capacity: 6)
      let got = UnsafeMutablePointer<UInt8>.allocate(capacity: 6)
      var failure: String?
      deinit {
        lanes.deallocate()
        got.deallocate()
      }

      /// Whether each post came once, the lanes in their order, the oldest post of a queue first and
      /// the newest of a stack.
      func isInOrder() -> Bool {
        var seen = UInt8(1) << got[0]
        for place in 1..<6 {
          let (before, after) = (got[place - 1], got[place])
          let (lane, next) = (lanes[Int(before)], lanes[Int(after)])
          seen |= 1 << after
          if lane > next || (lane == next && (lane < 5) != (before > after)) { return false }
        }
        return seen == 0b11_1111
      }
    }
    let thread = EventThread(on: EventCentral(core: core))
    let (state, done) = (State(), Gate())
    let length = 6
    let total = 1_000_000
    // The digits of a sequence's number are its lanes.
    @Sendable func begin(_ sequence: Int) {
      state.sequence = sequence
      state.count = 0
      var rest = sequence
      for index in 0..<UInt8(length) {
        let lane = rest % 10
        rest /= 10
        state.lanes[Int(index)] = UInt8(lane)
        let priority = EventPriority(rawValue: 4 - lane % 5)!
        if lane < 5 {
          thread.stackEvent(Post(index: index), priority: priority)
        } else {
          thread.queueEvent(Post(index: index), priority: priority)
        }
      }
    }
    thread.addEventCallback { (event: Post) in
      state.got[state.count] = event.index
      state.count += 1
      guard state.count == length else { return }
      if !state.isInOrder() {
        let lanes = (0..<length).map { state.lanes[$0] }
        state.failure =
          "posts to lanes \(lanes) came as \((0..<length).map { state.got[$0] })"
      }
      if state.failure != nil || state.sequence + orderStep >= total {
        done.open()
      } else {
        begin(state.sequence + orderStep)
      }
    }
    thread.addEventCallback { (go: Go) in begin(go.sequence) }
    thread.queueEvent(Go(sequence: 0))
    #expect(done.pass(within: 300))
    #expect(state.failure == nil)
    thread.cancel()
  }

  @Test("D3: a stacked batch comes out last in, first out through the central", arguments: cores)
  func stackedBatchIsReversed(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    thread.addEventCallback { (event: Numbered) in log.append(event.number) }
    for count in [0, 1, 63, 64, 65, 200] {
      let held = HeldThread(thread)
      (0..<count).map { Numbered(number: $0) }.stack(on: central)
      held.letGo()
      #expect(log.entries(atLeast: count) == (0..<count).reversed())
      _ = log.take()
      (0..<count).map { Numbered(number: $0) }.queue(priority: .low, on: central)
      #expect(log.entries(atLeast: count) == Array(0..<count))
      _ = log.take()
    }
    thread.cancel()
  }

  @Test("D2: every producer's order is kept, and each event comes once", arguments: cores)
  func producersKeepTheirOrder(core: EventCentral.Core) {
    struct FromProducer: Eventable {
      var producer: Int
      var number: Int
    }
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let (producers, each) = (5, 4_000)
    final class Counts: @unchecked Sendable {
      // Only the event thread's handler touches it, and the test after `done`.
      var next = [Int](repeating: 0, count: 5)
      var disorder = 0
      var all = 0
    }
    let (counts, done) = (Counts(), Gate())
    thread.addEventCallback { (event: FromProducer) in
      if counts.next[event.producer] != event.number { counts.disorder += 1 }
      counts.next[event.producer] = event.number + 1
      counts.all += 1
      if counts.all == producers * each { done.open() }
    }
    onThreads(producers) { producer in
      for number in 0..<each { FromProducer(producer: producer, number: number).queue(on: central) }
    }
    #expect(done.pass())
    #expect(counts.disorder == 0)
    #expect(thread.drain())
    #expect(
      thread.statistics == .init(delivered: UInt64(producers * each), skipped: 0, cancelled: 0))
  }
}
