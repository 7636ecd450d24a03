// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The references to the requesters of all listeners: one for each object, whichever central or
/// `EventListener` its listeners are registered at. Two would each take the other's hold for
/// somebody else who refers to the object.
enum RequesterTable {
  private struct Entry {
    /// As long as a listener or a place has it: also a place that is about to let go of the object,
    /// after the last listener.
    weak var reference: SharedReference?
  }
  /// By the objects' addresses. Locked for a look-up at each registration, and at the end of a
  /// reference; a reference's own mutex is locked within it, and no reference ends there.
  private static let references = Guarded([ObjectIdentifier: Entry]())

  /// The reference that all listeners of a requester share. Any thread.
  static func reference(to requester: AnyObject) -> SharedReference {
    let identifier = ObjectIdentifier(requester)
    let (reference, other) = references.withLock { references in
      let known = references[identifier]?.reference
      // The look at the object ends no object here: the caller has it.
      if let known, known.refers(to: requester) { return (known, SharedReference?.none) }
      let reference = SharedReference(requester)
      references[identifier] = Entry(reference: reference)
      return (reference, known)
    }
    // Of an object that had the address before. Perhaps it ends with this, which locks the table.
    withExtendedLifetime(other) {}
    return reference
  }

  /// A reference ends: nobody has it any more. Any thread.
  static func forget(_ identifier: ObjectIdentifier) {
    let other = references.withLock { references in
      // Another object may have the address by now, and a reference of its own.
      let other = references[identifier]?.reference
      if other == nil { references[identifier] = nil }
      return other
    }
    // As above.
    withExtendedLifetime(other) {}
  }
}
