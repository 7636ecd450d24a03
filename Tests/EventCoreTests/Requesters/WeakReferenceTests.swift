// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

@Suite("D9: the reference of a listener to its requester")
struct WeakReferenceTests {
  private final class Owner {
    let token: Lifetime.Token
    /// Called by the object's deinit.
    var atEnd: (Owner) -> Void = { _ in }

    init(_ lifetime: Lifetime) {
      token = lifetime.token()
    }

    deinit { atEnd(self) }
  }

  @Test("D9: the reference can be made strong while somebody else refers to the object, and never after")
  func strongWhileAlive() throws {
    let lifetime = Lifetime()
    var owner: Owner? = Owner(lifetime)
    let reference = WeakReference(owner!)
    // Not asked inside the macros, which would copy the reference.
    let held = reference.retained()
    let first = try #require(held)
    owner = nil
    #expect(lifetime.alive == 1)
    let heldAgain = reference.retained()
    let second = try #require(heldAgain)
    #expect(second.toOpaque() == first.toOpaque())
    first.release()
    #expect(lifetime.alive == 1)
    second.release()
    #expect(lifetime.alive == 0)
    let heldAfter = reference.retained()
    #expect(heldAfter == nil)
  }

  @Test("D9: the reference keeps nothing alive, with a weak reference of the user's or without")
  func keepsNothingAlive() {
    let lifetime = Lifetime()
    for isWeakToo in [false, true] {
      var owner: Owner? = Owner(lifetime)
      weak let another = isWeakToo ? owner : nil
      let reference = WeakReference(owner!)
      owner = nil
      #expect(lifetime.alive == 0)
      #expect(another == nil)
      let held = reference.retained()
      #expect(held == nil)
    }
  }

  @Test("D9: a reference to an object that is ending cannot be made strong")
  func whileTheObjectEnds() {
    let lifetime = Lifetime()
    let found = Log<Bool>()
    var owner: Owner? = Owner(lifetime)
    let shared = SharedReference(owner!)
    owner!.atEnd = { _ in
      if case .gone = shared.enter(by: 8) { found.append(false) } else { found.append(true) }
    }
    owner = nil
    #expect(found.entries == [false])
    #expect(shared.isGone)
  }

  @Test("D9: a reference made to an ending object refers to nothing, since that may lie on the stack")
  func madeWhileTheObjectEnds() {
    let lifetime = Lifetime()
    let found = Log<Bool>()
    var owner: Owner? = Owner(lifetime)
    owner!.atEnd = { owner in
      let reference = WeakReference(owner)
      found.append(reference.refers(to: owner))
      found.append(reference.retained() != nil)
      found.append(!SharedReference(owner).isGone)
    }
    owner = nil
    #expect(found.entries == [false, false, false])
    #expect(lifetime.alive == 0)
  }

  @Test("the reference knows its object, also among objects that are made later")
  func knowsItsObject() {
    let lifetime = Lifetime()
    var owner: Owner? = Owner(lifetime)
    let reference = WeakReference(owner!)
    let isKnown = reference.refers(to: owner!)
    #expect(isKnown)
    owner = nil
    // Some of these would be at the address of the first object if its memory were free.
    let others = (0..<1_000).map { _ in Owner(lifetime) }
    var count = 0
    for other in others where reference.refers(to: other) { count += 1 }
    #expect(count == 0)
  }

  /// Several threads share this, since a reference itself cannot be copied.
  private final class Common: @unchecked Sendable {
    // `reference` and `address` are constants that any thread may use. The test's own thread alone
    // uses `owner`.
    let reference: WeakReference
    let address: UnsafeMutableRawPointer
    var owner: Owner?

    init(_ owner: Owner) {
      reference = WeakReference(owner)
      address = Unmanaged.passUnretained(owner).toOpaque()
      self.owner = owner
    }
  }

  @Test("D9: an object ends once if threads make it strong while the last other reference goes")
  func amongThreads() throws {
    let lifetime = Lifetime()
    for _ in 0..<300 {
      let common = Common(Owner(lifetime))
      let start = Gate()
      let ended = Gate()
      let others = Atomic<Int>(0)
      for _ in 0..<3 {
        runThread {
          start.pass()
          // Until the object has ended the reference yields that object. The loop is bounded, since
          // three threads that hold the object in turn keep it alive.
          for _ in 0..<1_000 {
            guard let object = common.reference.retained() else { break }
            if object.toOpaque() != common.address { others.add(1, ordering: .relaxed) }
            object.release()
          }
          ended.open()
        }
      }
      for _ in 0..<3 { start.open() }
      common.owner = nil
      for _ in 0..<3 { try #require(ended.pass()) }
      #expect(others.load(ordering: .relaxed) == 0)
      let held = common.reference.retained()
      #expect(held == nil)
    }
    #expect(lifetime.alive == 0)
    #expect(lifetime.total == 300)
  }
}
