// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU && !canImport(ObjectiveC)
  internal import CSwiftRuntime

  /// A reference that does not keep its object alive and can be made strong while it lives.
  ///
  /// A `weak` reference would do the same, but moves the object's counts to a side table for good: then each
  /// check whether anybody refers to the object (`RequesterHold.isLastReference`) is a locked operation of
  /// 5 ns instead of one load. This reference keeps the object's memory allocated instead, so that no other
  /// object gets its address.
  ///
  /// For an object that registers in its `deinit` the reference is empty: the compiler may have put the
  /// object on the stack, and no reference can keep that memory.
  struct WeakReference: ~Copyable {
    // Constant. Nil if the object was ending when the reference was made.

    /// Keeps the memory. It is never read, since that traps once the object has ended.
    private unowned let object: AnyObject?
    private let address: UnsafeMutableRawPointer?

    init(_ object: AnyObject) {
      let address = Unmanaged.passUnretained(object).toOpaque()
      guard swift_runtime_try_retain(address) else {
        self.object = nil
        self.address = nil
        return
      }
      self.object = object
      self.address = address
      Unmanaged<AnyObject>.fromOpaque(address).release()
    }

    /// The object, retained for the caller; nil if it is ending or has ended. Any thread.
    func retained() -> Unmanaged<AnyObject>? {
      guard let address, swift_runtime_try_retain(address) else { return nil }
      return .fromOpaque(address)
    }

    /// Whether this is the object. Any thread.
    func refers(to object: AnyObject) -> Bool {
      address == Unmanaged.passUnretained(object).toOpaque()
    }
  }
#else
  /// The same by a `weak` reference: on Apple's systems, where the object may be an Objective-C object, and
  /// without the C core, since the form above needs a function of C.
  struct WeakReference: ~Copyable {
    private weak let object: AnyObject?

    init(_ object: AnyObject) {
      self.object = object
    }

    func retained() -> Unmanaged<AnyObject>? {
      object.map { .passRetained($0) }
    }

    func refers(to object: AnyObject) -> Bool {
      self.object === object
    }
  }
#endif
