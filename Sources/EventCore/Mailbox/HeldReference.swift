// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A weak reference that a consumer makes strong for a run of events: to load it and to let it go again for
/// every call costs 60 ns, which is ten times the call.
///
/// The consumer lets go of all of them when it runs dry, when its pump returns, and after some hundred
/// calls, so that an object is not kept longer than that if its events do not come any more. Before each
/// call it looks whether its own reference is the last: then the object ends there and then, uncalled.
final class HeldReference: @unchecked Sendable {
  // `weakObject` is constant; `strongObject` is the consumer's thread's.

  private weak let weakObject: AnyObject?
  private var strongObject: AnyObject?

  init(_ object: AnyObject?) {
    weakObject = object
  }

  /// Whether the object has ended. Any thread.
  var isGone: Bool { weakObject == nil }

  // MARK: The consumer only

  /// The object, if it is held already.
  @inline(__always)
  var held: Unmanaged<AnyObject>? { strongObject.map { Unmanaged.passUnretained($0) } }

  /// Whether nobody else holds what is held.
  @inline(__always)
  var isLast: Bool { isKnownUniquelyReferenced(&strongObject) }

  /// Holds the object. False if it is gone.
  func hold() -> Bool {
    strongObject = weakObject
    return strongObject != nil
  }

  /// Lets go of the object, which may end by that.
  func letGo() {
    strongObject = nil
  }
}

extension Consumer {
  /// What this consumer holds at the moment. Its thread only.
  struct Held {
    /// The owner, if a handler needed it.
    var owner: EventThread?
    var references: [HeldReference] = []
    /// Calls since all were let go.
    var calls = 0
  }

  /// The object of a reference for one call; nil if it is gone.
  func hold(_ reference: HeldReference) -> Unmanaged<AnyObject>? {
    held.pointee.calls &+= 1
    if held.pointee.calls > 256 {
      didLeaveHandler()
      letGoOfReferences()
    }
    if let object = reference.held {
      guard reference.isLast else { return object }
      // Its end may wait for its own handlers to be done.
      didLeaveHandler()
      reference.letGo()
      return nil
    }
    guard reference.hold() else { return nil }
    held.pointee.references.append(reference)
    return reference.held
  }

  /// Between two calls.
  func letGoOfReferences() {
    held.pointee.calls = 0
    // One by one: what ends by it is user code.
    while let reference = held.pointee.references.popLast() {
      reference.letGo()
    }
  }

  /// Lets go of everything. May free the owner, whose deinit closes the mailbox.
  func letGoOfAll() {
    letGoOfReferences()
    held.pointee.owner = nil
  }
}
