// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The references to the requesters of all listeners: one for each object, whichever central or
/// `EventListener` its listeners are registered at. Two would each take the other's hold for somebody else who
/// refers to the object.
enum RequesterTable {
  /// By the objects' addresses, and how many listeners each has. Locked for a look-up at each registration and
  /// each end of one; nothing is locked within it.
  private static let references = Guarded(
    [ObjectIdentifier: (reference: SharedReference, count: Int)]())

  /// The reference that all listeners of a requester share, for one more of them. Any thread.
  static func reference(to requester: AnyObject) -> SharedReference {
    references.withLock { references in
      let identifier = ObjectIdentifier(requester)
      // The look at the object ends no object here: the caller has it.
      if let entry = references[identifier], entry.reference.refers(to: requester) {
        references[identifier] = (entry.reference, entry.count + 1)
        return entry.reference
      }
      let reference = SharedReference(requester)
      references[identifier] = (reference, 1)
      return reference
    }
  }

  /// One listener less of a requester. Any thread.
  static func forget(_ reference: SharedReference?) {
    guard let reference else { return }
    references.withLock { references in
      // Another object may have the address by now.
      guard let entry = references[reference.identifier], entry.reference === reference else {
        return
      }
      references[reference.identifier] = entry.count > 1 ? (reference, entry.count - 1) : nil
    }
  }
}
