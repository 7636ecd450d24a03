// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The references to the requesters of all listeners: one for each object in the whole process. Two
/// references to one object would each take the other's hold for a reference of the user's.
enum RequesterTable {
  private struct Entry {
    /// It lives as long as a listener or a consumer retains it, which a consumer may do for longer than the
    /// last listener.
    weak var reference: SharedReference?
  }
  /// By the addresses of the objects. Locked at each registration and at the end of each reference. The
  /// mutex of a reference is locked within it; no reference is released within it.
  private static let references = Guarded([ObjectIdentifier: Entry]())

  /// The reference that all listeners of a requester share. Any thread.
  static func reference(to requester: AnyObject) -> SharedReference {
    let identifier = ObjectIdentifier(requester)
    let (reference, other) = references.withLock { references in
      let known = references[identifier]?.reference
      // `refers` cannot end the object, since the caller has it.
      if let known, known.refers(to: requester) { return (known, SharedReference?.none) }
      let reference = SharedReference(requester)
      references[identifier] = Entry(reference: reference)
      return (reference, known)
    }
    // The reference to an earlier object at this address. Its `deinit` would lock the table.
    withExtendedLifetime(other) {}
    return reference
  }

  /// Removes a reference that ends. Any thread.
  static func forget(_ identifier: ObjectIdentifier) {
    let other = references.withLock { references in
      // Another object may have this address by now, and a reference that must stay.
      let other = references[identifier]?.reference
      if other == nil { references[identifier] = nil }
      return other
    }
    // As above.
    withExtendedLifetime(other) {}
  }
}
