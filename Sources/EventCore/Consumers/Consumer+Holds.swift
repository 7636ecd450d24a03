// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer {
  /// The objects that a consumer retains at the moment. The consumer's thread only.
  @usableFromInline
  struct Held {
    /// How many events are only counted until `Consumer.lookAround`; counted down by each.
    @usableFromInline var left = Held.events
    /// How many events will have been taken then.
    private var last = Held.events
    /// How many events were taken, handled or skipped.
    var taken: UInt64 { last &- left }
    /// The owner, since a handler needed it; else nil.
    var owner: AnyObject?
    /// The requesters that this consumer holds over the run. Each stores its index here.
    var references: [SharedReference] = []

    /// Counts anew: down to the end of the next event while there is an owner, to look at it, else to the next multiple
    /// of `events`.
    mutating func countDown() {
      let taken = taken
      left = owner != nil ? 1 : Held.events - taken % Held.events
      last = taken + left
    }

    mutating func append(_ reference: SharedReference) {
      reference.index.store(references.count, ordering: .relaxed)
      references.append(reference)
    }

    /// False if this consumer does not hold the requester.
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

    /// After how many events, handled or skipped, even a busy consumer lets all references go.
    @inlinable static var events: UInt64 { 256 }
  }

  /// Identifies this consumer in `RequesterHold.holder`.
  @inlinable
  @inline(__always)
  var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

  /// The object of a reference, retained for a call; nil if it is gone. If it is held for this call alone,
  /// the caller ends the hold by `letGo`.
  ///
  /// It may leave the announced handler, to let go of the object or to pause. Then `calls.running` is 0,
  /// and the caller has to announce the handler and check whether it has ended once more.
  func hold(_ reference: SharedReference) -> HeldObject? {
    if reference.isHeld(by: address), let object = reference.held {
      return HeldObject(object: object, isForOneCall: false)
    }
    // The object is gone, or a pause is due, before which its holder has to let it go.
    letGoOfRun(reference)
    while true {
      switch reference.enter(by: address) {
      case .heldOverRun:
        held.pointee.append(reference)
        if let object = reference.held { return HeldObject(object: object, isForOneCall: false) }
        // Its last other reference went meanwhile.
        letGoOfRun(reference)
        return nil
      case .heldOverCall:
        // Nil if only consumers hold it, perhaps one that is running another object's handler.
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

  /// Lets go of the object if it is held over a run. Leaves the handler first, since the object's `deinit`
  /// may wait for its handlers to be done.
  private func letGoOfRun(_ reference: SharedReference) {
    guard held.pointee.remove(reference) else { return }
    calls.didLeaveHandler()
    reference.letGo(by: address)
  }

  /// Ends a hold for one call. The object may end here, after its handler.
  func letGo(_ reference: SharedReference) {
    calls.didLeaveHandler()
    reference.leave()
  }

  /// Releases the owner, after an event during which the last other reference to it went; or after the next one, if
  /// that reference went with the event itself.
  func lookAtOwner() {
    if isKnownUniquelyReferenced(&held.pointee.owner) {
      held.pointee.owner = nil
    }
  }

  func letGoOfReferences() {
    // One by one, since a release runs user code.
    while let reference = held.pointee.references.popLast() {
      reference.letGo(by: address)
    }
  }

  /// Lets go of everything, between two events. May free the owner, whose `deinit` closes the mailbox.
  func letGoOfAll() {
    letGoOfReferences()
    held.pointee.owner = nil
  }
}
