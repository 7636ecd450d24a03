// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventDrivenSwift
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("@ThreadSafeSemaphore")
struct ThreadSafeSemaphoreTests {
  class Thermometer: @unchecked Sendable {
    // The wrappers guard all that it stores.
    @ThreadSafeSemaphore public var celsius: Float = Float.zero
    @ThreadSafeSemaphore public var readings: [Int] = []

    var lock: ThreadSafeSemaphore<[Int]> { _readings }
  }

  @Test("the property is read and written like any other")
  func readAndWrite() {
    let thermometer = Thermometer()
    #expect(thermometer.celsius == 0)
    thermometer.celsius = 21.5
    #expect(thermometer.celsius == 21.5)
    thermometer.readings.append(1)
    #expect(thermometer.readings == [1])
  }

  @Test("the getter does not race with the setter, as it did in EventDrivenSwift")
  func semaphoreRaces() {
    final class Holder: @unchecked Sendable {
      // The wrapper guards it. A torn read would show two words that do not belong together.
      @ThreadSafeSemaphore var pair = (0, 0)
    }
    let holder = Holder()
    let torn = Atomic<Int>(0)
    onThreads(3) { index in
      for number in 0..<5_000 {
        if index == 0 {
          holder.pair = (number, -number)
        } else {
          let pair = holder.pair
          if pair.0 + pair.1 != 0 { torn.wrappingAdd(1, ordering: .relaxed) }
        }
      }
    }
    #expect(torn.load(ordering: .relaxed) == 0)
  }

  @Test("withLock changes the value in one step and returns what the closure returns")
  func withLock() {
    let thermometer = Thermometer()
    let count = thermometer.lock.withLock { readings in
      readings.append(7)
      return readings.count
    }
    #expect(count == 1)
    thermometer.$readings.withLock { $0.append(8) }
    #expect(thermometer.readings == [7, 8])
  }

  @Test("withLock and withTryLock throw the closure's error with its type, and unlock")
  func errors() {
    struct Refused: Error, Equatable {}
    let thermometer = Thermometer()
    let refuse: (inout [Int]) throws(Refused) -> Void = { value throws(Refused) in
      value.append(1)
      throw Refused()
    }
    #expect(throws: Refused()) { try thermometer.lock.withLock(refuse) }
    #expect(throws: Refused()) { try thermometer.lock.withTryLock(refuse) }
    #expect(thermometer.readings == [1, 1])
  }

  @Test("withTryLock runs its closure at once, or not at all")
  func withTryLock() {
    //  test                       holder
    //                             holds the lock
    //  is refused
    //                             lets go
    //  gets it
    let thermometer = Thermometer()
    let (holds, letGo, done) = (Gate(), Gate(), Gate())
    runThread {
      thermometer.$readings.withLock { readings in
        holds.open()
        letGo.pass()
        readings.append(1)
      }
      done.open()
    }
    holds.pass()
    #expect(thermometer.lock.withTryLock { $0.count } == nil)
    var refused = false
    thermometer.lock.withTryLock {
      $0.append(0)
    } _: {
      refused = true
    }
    #expect(refused)
    letGo.open()
    done.pass()
    #expect(thermometer.lock.withTryLock { $0.count } == 1)
    refused = false
    thermometer.lock.withTryLock {
      $0.append(2)
    } _: {
      refused = true
    }
    #expect(!refused)
    #expect(thermometer.readings == [1, 2])
  }

  @Test("readers and writers do not race, and no change by withLock is lost")
  func race() {
    // A torn read would show halves that do not belong together.
    struct Pair: Sendable {
      var low = 0
      var text = "0"
    }
    final class Shared: @unchecked Sendable {
      // The wrappers guard all that it stores.
      @ThreadSafeSemaphore var pair = Pair()
      @ThreadSafeSemaphore var count = 0
    }
    let shared = Shared()
    onThreads(4) { index in
      for step in 0..<2_000 {
        if index.isMultiple(of: 2) {
          shared.pair = Pair(low: step, text: "\(step)")
        } else {
          let pair = shared.pair
          if pair.text != "\(pair.low)" {
            Issue.record("torn: \(pair)")
          }
        }
        shared.$count.withLock { $0 += 1 }
      }
    }
    #expect(shared.count == 8_000)
  }

  @Test("D7: the old value is released outside of the lock, so that its deinit may use the property")
  func oldValueEndsOutside() {
    final class Owner: @unchecked Sendable {
      // The wrapper guards the item, and the log is a constant.
      @ThreadSafeSemaphore var item: Item?
      let seen = Log<Bool>()
    }
    final class Item: Sendable {
      let owner: Owner
      init(_ owner: Owner) { self.owner = owner }
      deinit { owner.seen.append(owner.item == nil) }
    }
    let owner = Owner()
    owner.item = Item(owner)
    owner.item = nil
    #expect(owner.seen.entries == [true])
  }

  @Test("D12: using the property inside its own withLock traps instead of waiting for ever")
  func recursion() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let thermometer = Thermometer()
      thermometer.$readings.withLock { $0.append(thermometer.readings.count) }
    }
    expectMessage(result, "use the closure's parameter")
  }
}
