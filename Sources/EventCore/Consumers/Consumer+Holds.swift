// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer {
  /// What this consumer holds at the moment. Its thread only.
  @usableFromInline
  struct Held {
    /// Whether there is an owner: looked at after each event.
    @usableFromInline var hasOwner = false
    /// The owner, if a handler needed it.
    var owner: AnyObject?
    /// Each knows its index.
    var references: [SharedReference] = []

    mutating func append(_ reference: SharedReference) {
      reference.index.store(references.count, ordering: .relaxed)
      references.append(reference)
    }

    /// Takes a reference out, wherever it was found gone. False if this consumer does not hold it.
    mutating func remove(_ reference: SharedReference) -> Bool {
      let index = reference.index.load(ordering: .relaxed)
      guard index < references.count, references[index] === reference else { return false }
      let last = references.removeLast()
      if last !== reference {
        references[index] = last
        last.index.store(index, ordering: .relaxed)
      }
      return true
    }

    /// After how many events, called or turned away, all references are let go, however busy the
    /// consumer is.
    @inlinable static var events: UInt64 { 256 }
  }

  /// What `RequesterHold.holder` has if it is this consumer.
  @inlinable
  @inline(__always)
  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

  /// The object of a reference for one call, which `letGo` ends if it is held for that alone; nil
  /// if it is gone. It may leave the handler that was announced, to let go or to pause: then
  /// `calls.running` is 0, and whoever calls announces the handler and asks whether it has ended anew.
  func hold(_ reference: SharedReference) -> HeldObject? {
    if reference.isHeld(by: address), let object = reference.held {
      return HeldObject(object: object, isForOneCall: false)
    }
    // It is gone, or all who hold it are to let go for a moment.
    letGoOfRun(reference)
    while true {
      switch reference.enter(by: address) {
      case .heldOverRun:
        held.pointee.append(reference)
        if let object = reference.held { return HeldObject(object: object, isForOneCall: false) }
        // It went while it was loaded.
        letGoOfRun(reference)
        return nil
      case .heldOverCall:
        // Nil if it is held by others alone, perhaps by one that stands in another's handler.
        if let object = reference.held { return HeldObject(object: object, isForOneCall: true) }
        letGo(reference)
        return nil
      case .gone:
        return nil
      case .pause(let deadline):
        calls.didLeaveHandler()
        reference.pause(until: deadline)
      }
    }
  }

  /// Lets go of the object if it is held over a run. Its end may wait for its handlers to be done.
  private func letGoOfRun(_ reference: SharedReference) {
    guard held.pointee.remove(reference) else { return }
    calls.didLeaveHandler()
    reference.letGo(by: address)
  }

  /// Ends the call of an object that was held for it. The object may end here, after its handler.
  func letGo(_ reference: SharedReference) {
    calls.didLeaveHandler()
    reference.leave()
  }

  /// After an event, if the owner is held: the last reference but ours may have gone during it; then
  /// the owner ends here and now.
  func lookAtOwner() {
    if isKnownUniquelyReferenced(&held.pointee.owner) {
      held.pointee.hasOwner = false
      held.pointee.owner = nil
    }
  }

  func letGoOfReferences() {
    // One by one: what ends by it is user code.
    while let reference = held.pointee.references.popLast() {
      reference.letGo(by: address)
    }
  }

  /// Lets go of everything, between two events. May free the owner, whose deinit closes the
  /// mailbox.
  func letGoOfAll() {
    letGoOfReferences()
    held.pointee.hasOwner = false
    held.pointee.owner = nil
  }
}
