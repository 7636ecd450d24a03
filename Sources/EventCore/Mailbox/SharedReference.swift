// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A weak reference to an object that handlers belong to, which a consumer makes strong for a run of
/// events: to load a weak reference and to let go again for every call costs 60 ns, ten times the call.
///
/// All handlers of one object share it, and one consumer at a time holds the object, so that "nobody
/// else refers to it" can be seen: before each call the holder looks whether its own reference is the
/// last, and then the object ends there and then, uncalled (D9). Another consumer meanwhile pays for
/// each call. The holder lets go when it runs dry, when its pump returns, and after some hundred events
/// at the latest.
@usableFromInline
final class SharedReference: @unchecked Sendable {
  // `weakObject` and `identifier` are constant; what `strongObject` points to is the holder's, on its thread.

  let identifier: ObjectIdentifier
  private weak let weakObject: AnyObject?
  /// In memory of its own: it is looked at before each call, and an access check would cost as much again.
  private let strongObject: UnsafeMutablePointer<AnyObject?>
  /// The address of the consumer that holds the object; 0 = nobody.
  private let holder = Atomic<UInt>(0)

  init(_ object: AnyObject) {
    identifier = ObjectIdentifier(object)
    weakObject = object
    strongObject = .allocate(capacity: 1)
    strongObject.initialize(to: nil)
  }

  deinit {
    strongObject.deinitialize(count: 1)
    strongObject.deallocate()
  }

  /// Whether the object has ended. Any thread, with no lock held: the look itself may turn out to hold
  /// the last reference.
  var isGone: Bool { weakObject == nil }

  /// Whether it refers to `object` and not to one that had the same address before. Any thread.
  func refers(to object: AnyObject) -> Bool { weakObject === object }

  /// The object for one call. Any thread.
  func load() -> Unmanaged<AnyObject>? { weakObject.map { Unmanaged.passRetained($0) } }

  // MARK: A consumer's thread

  func isHeld(by consumer: UInt) -> Bool {
    // Relaxed: only the consumer itself writes its own address, and takes it back.
    holder.load(ordering: .relaxed) == consumer
  }

  /// Becomes the holder. False if another consumer is, or the object is gone.
  func hold(by consumer: UInt) -> Bool {
    // Acquiring, pairs with `letGo`: `strongObject` is ours.
    guard
      holder.compareExchange(expected: 0, desired: consumer, ordering: .acquiring).exchanged
    else { return false }
    strongObject.pointee = weakObject
    if strongObject.pointee == nil {
      holder.store(0, ordering: .releasing)
      return false
    }
    return true
  }

  /// Whether nobody but the holder refers to the object. For the holder.
  var isLastReference: Bool { isKnownUniquelyReferenced(&strongObject.pointee) }

  /// The object, for its holder; nil if the holder's reference is the last.
  var held: Unmanaged<AnyObject>? {
    guard !isLastReference else { return nil }
    return strongObject.pointee.map { Unmanaged.passUnretained($0) }
  }

  /// The holder lets go. The object may end by that, which is user code.
  func letGo() {
    let object = strongObject.pointee
    strongObject.pointee = nil
    // Releasing, pairs with `hold`.
    holder.store(0, ordering: .releasing)
    withExtendedLifetime(object) {}
  }
}

/// An object for the duration of a call.
@usableFromInline
struct HeldObject {
  @usableFromInline let object: Unmanaged<AnyObject>
  /// Retained for this call alone.
  @usableFromInline let isForOneCall: Bool

  @usableFromInline
  init(object: Unmanaged<AnyObject>, isForOneCall: Bool) {
    self.object = object
    self.isForOneCall = isForOneCall
  }
}

extension Consumer {
  /// What this consumer holds at the moment. Its thread only.
  @usableFromInline
  struct Held {
    /// Whether there is anything: what is looked at after each event.
    @usableFromInline var isAny = false
    /// The owner, if a handler needed it.
    var owner: EventThread?
    var references: [SharedReference] = []
    /// Events since all references were let go.
    var events = 0
  }

  /// Events after which all references are let go, however busy the consumer is.
  private static let eventsPerHold = 256

  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

  /// The object of a reference for one call, which `letGo` ends; nil if it is gone.
  func hold(_ reference: SharedReference) -> HeldObject? {
    if reference.isHeld(by: address) {
      if let object = reference.held { return HeldObject(object: object, isForOneCall: false) }
      // The last reference is ours. The end of the object may wait for its handlers to be done.
      didLeaveHandler()
      held.pointee.references.removeAll { $0 === reference }
      reference.letGo()
      return nil
    }
    if reference.hold(by: address) {
      held.pointee.references.append(reference)
      held.pointee.isAny = true
      if let object = reference.held { return HeldObject(object: object, isForOneCall: false) }
      // Gone while it was loaded: as above.
      return hold(reference)
    }
    return reference.load().map { HeldObject(object: $0, isForOneCall: true) }
  }

  /// Ends the call of an object that was retained for it. The object may end here, after its handler.
  func letGo(_ object: Unmanaged<AnyObject>) {
    didLeaveHandler()
    object.release()
  }

  /// After an event, if anything is held.
  @inline(never)
  func lookAtHeld() {
    if held.pointee.owner != nil, isKnownUniquelyReferenced(&held.pointee.owner) {
      // The last reference but ours went during this event: the owner ends here and now.
      held.pointee.owner = nil
    }
    held.pointee.events &+= 1
    if held.pointee.events >= Self.eventsPerHold {
      letGoOfReferences()
    }
  }

  private func letGoOfReferences() {
    held.pointee.events = 0
    held.pointee.isAny = held.pointee.owner != nil
    // One by one: what ends by it is user code.
    while let reference = held.pointee.references.popLast() {
      reference.letGo()
    }
  }

  /// Lets go of everything, between two events. May free the owner, whose deinit closes the mailbox.
  func letGoOfAll() {
    guard held.pointee.isAny else { return }
    letGoOfReferences()
    held.pointee.isAny = false
    held.pointee.owner = nil
  }
}
