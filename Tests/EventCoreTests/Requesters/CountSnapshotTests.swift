// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

/// A hold looks whether anybody but consumers refers to its requester. As long as the word with the
/// counts is the one of its snapshot, that look is a comparison.
@Suite("D9: the comparison of a requester's counts with a snapshot of them")
struct CountSnapshotTests {
  private final class Owner {
    let token: Lifetime.Token

    init(_ lifetime: Lifetime) {
      token = lifetime.token()
    }
  }

  /// A hold with its one reference, and the others, which are counted by hand: the compiler may
  /// release a variable of the test whenever it likes.
  private final class Held: @unchecked Sendable {
    // `hold` is begun once, by the test's own thread, and read by it alone. The rest is constant.
    private let hold = UnsafeMutablePointer<RequesterHold>.allocate(capacity: 1)
    let object: Unmanaged<Owner>

    init(_ lifetime: Lifetime, others: Int) {
      hold.initialize(to: RequesterHold())
      object = .passRetained(Owner(lifetime))
      for _ in 0..<others { _ = object.retain() }
    }

    func begin() { RequesterHold.begin(hold, object.toOpaque(), isForRun: true) }

    // The macros would copy the hold.
    var hasSnapshot: Bool { hold.pointee.snapshot != nil }
    var isLastReference: Bool { hold.pointee.isLastReference }

    deinit {
      hold.deinitialize(count: 1)
      hold.deallocate()
      object.release()
    }
  }

  @Test("D9: the hold sees that the last other reference has gone, whatever the count was")
  func lastReference() {
    let lifetime = Lifetime()
    for others in 0...5 {
      let held = Held(lifetime, others: others)
      held.begin()
      #expect(held.hasSnapshot == (CountSnapshot.isSupported && others > 0))
      #expect(held.isLastReference == (others == 0))
      for left in (0..<others).reversed() {
        held.object.release()
        #expect(held.isLastReference == (left == 0))
      }
      // Somebody makes a weak reference strong.
      _ = held.object.retain()
      #expect(!held.isLastReference)
      held.object.release()
      #expect(held.isLastReference)
    }
    #expect(lifetime.alive == 0)
  }

  @Test("D9: an object whose counts lie in a side table has no snapshot, and is judged correctly")
  func tableOfCounts() {
    let lifetime = Lifetime()
    for isWeakFirst in [false, true] {
      let held = Held(lifetime, others: 1)
      weak var reference: Owner?
      if isWeakFirst { reference = held.object.takeUnretainedValue() }
      held.begin()
      #expect(held.hasSnapshot == (CountSnapshot.isSupported && !isWeakFirst))
      if !isWeakFirst { reference = held.object.takeUnretainedValue() }
      #expect(!held.isLastReference)
      held.object.release()
      #expect(held.isLastReference)
      #expect(reference != nil)
    }
    #expect(lifetime.alive == 0)
  }

  @Test("D9: the hold agrees with a model, whatever is done to the references")
  func againstModel() {
    var random = SeededRandom(seed: announcedSeed("CountSnapshotTests.againstModel"))
    let lifetime = Lifetime()
    for _ in 0..<500 {
      var others = Int.random(in: 0...3, using: &random)
      let held = Held(lifetime, others: others)
      // Unowned and weak references, which keep nothing alive but are counted, too.
      var holdNothing: [() -> Void] = []
      func change() {
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<3:
          _ = held.object.retain()
          others += 1
        case 3..<6 where others > 0:
          held.object.release()
          others -= 1
        case 6:
          holdNothing.append { [unowned object = held.object.takeUnretainedValue()] in _ = object }
        case 7 where Int.random(in: 0..<8, using: &random) == 0:
          holdNothing.append { [weak object = held.object.takeUnretainedValue()] in _ = object }
        default: break
        }
      }
      for _ in 0..<Int.random(in: 0..<8, using: &random) { change() }
      held.begin()
      for _ in 0..<32 {
        change()
        #expect(held.isLastReference == (others == 0))
      }
      for _ in 0..<others { held.object.release() }
      #expect(held.isLastReference)
    }
    #expect(lifetime.alive == 0)
  }

  @Test(
    "D9: no snapshot comes of counts that change while it is taken",
    .enabled(if: CountSnapshot.isSupported))
  func changesInBetween() {
    let lifetime = Lifetime()
    for isTable in [true, false] {
      let held = Held(lifetime, others: 1)
      weak var reference: Owner?
      let snapshot = CountSnapshot(held.object.toOpaque()) { _ in
        if isTable {
          reference = held.object.takeUnretainedValue()
        } else {
          // Somebody makes a weak reference strong, and keeps it.
          _ = held.object.retain()
        }
        _ = held.object.retain()
        return true
      }
      #expect(snapshot == nil)
      #expect((reference != nil) == isTable)
      if !isTable { held.object.release() }
      held.object.release()
    }
    #expect(lifetime.alive == 0)
  }

  @Test("D9: a weak reference that is made while a hold begins does not mislead it")
  func othersWhileItBegins() throws {
    let lifetime = Lifetime()
    for _ in 0..<500 {
      let held = Held(lifetime, others: 1)
      let start = Gate()
      let ended = Gate()
      runThread {
        weak var reference: Owner?
        start.pass()
        reference = held.object.takeUnretainedValue()
        held.object.release()
        _ = reference
        ended.open()
      }
      start.open()
      held.begin()
      try #require(ended.pass())
      #expect(held.isLastReference)
    }
    // The thread releases its own reference after it has opened the gate.
    #expect(lifetime.waitUntilNone())
  }
}
