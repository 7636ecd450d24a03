// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU && !canImport(ObjectiveC)
  internal import CSwiftRuntime

  /// A reference that does not keep its object alive and can be made strong while it lives.
  ///
  /// A `weak` reference would be the same, but moves the object's counts into a table beside it,
  /// for good: each look whether somebody refers to the object (`RequesterHold.isLastReference`) is
  /// a locked operation then, 5 ns where it is one load here. Instead the object's memory stays as
  /// long as the reference, and so nothing else gets its address.
  ///
  /// An object that is ending already, which registers from its deinit, gets no reference: the
  /// compiler may have put it on the stack, whose memory no reference keeps.
  struct WeakReference: ~Copyable {
    // Constant. Nil if the object was ending.

    /// Keeps the memory, and is not read: that would trap once the object has ended.
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

    /// Whether that is the object. Any thread.
    func refers(to object: AnyObject) -> Bool {
      address == Unmanaged.passUnretained(object).toOpaque()
    }
  }
#else
  /// A reference that does not keep its object alive and can be made strong while it lives.
  ///
  /// On Apple's systems the object may be of Objective-C, whose counts are not Swift's; and without
  /// the C core nothing here is of C.
  struct WeakReference: ~Copyable {
    private weak let object: AnyObject?

    init(_ object: AnyObject) {
      self.object = object
    }

    /// The object, retained for the caller; nil if it is ending or has ended. Any thread.
    func retained() -> Unmanaged<AnyObject>? {
      object.map { .passRetained($0) }
    }

    /// Whether that is the object. Any thread.
    func refers(to object: AnyObject) -> Bool {
      self.object === object
    }
  }
#endif
