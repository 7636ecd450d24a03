// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A registered handler of a node, which it can remove.
///
/// **Threads**: any, for every member, also inside the handler, except for ``removeAndWait()``.
///
/// **Ownership**: the handler stays if the handle is released. The handle retains neither the node nor the
/// handler's closure.
public final class EventNodeHandle: EventRegistration, Sendable {
  // Constant except for `registration`, which is 0 until the handler is registered, and does not change
  // afterwards. The handler's closure may retain the handle: that makes no cycle, since the memory that the
  // handle keeps of the core does not keep the closure.

  private let core: any TreeCore.Type
  private let registration = Atomic<UInt>(0)
  /// Hands events over to the place where the handler runs; nil if that is the thread that raises.
  let delivery: TreeDelivery?
  /// The object whose method the handler is, if it is one. Only compared with nil, which any thread may.
  nonisolated(unsafe) private weak let owner: AnyObject?
  private let hasOwner: Bool

  init(_ core: any TreeCore.Type, _ delivery: TreeDelivery?, _ owner: AnyObject?) {
    self.core = core
    self.delivery = delivery
    self.owner = owner
    hasOwner = owner != nil
  }

  deinit {
    if let registration = registered {
      core.release(registration)
    }
  }

  /// Stores the core's registration. Releasing, pairs with `registered`, whose caller finds it complete.
  func register(_ registration: UnsafeMutableRawPointer) {
    self.registration.store(UInt(bitPattern: registration), ordering: .releasing)
  }

  private var registered: UnsafeMutableRawPointer? {
    UnsafeMutableRawPointer(bitPattern: registration.load(ordering: .acquiring))
  }

  /// Where the handler runs; nil for the thread that raises.
  public var executesOn: EventListenerContext? { delivery?.place }

  /// Whether the handler can still be called. Once this is false, no call of it begins (D6).
  public var isActive: Bool {
    registered.map(core.isActive) != false && delivery?.delivers ?? true && (!hasOwner || owner != nil)
  }

  /// Removes the handler, as ``EventRegistration/remove()``.
  ///
  /// - Returns: False if it was removed before or its node has ended.
  @discardableResult
  public func remove() -> Bool {
    registered.map(core.remove) ?? false
  }

  /// Removes the handler and waits for its last call, as ``EventRegistration/removeAndWait()``. The thread
  /// sleeps until the raise that called the handler goes on.
  @available(*, noasync, message: "It blocks its thread: write await removed().")
  @discardableResult
  public func removeAndWait() -> Bool {
    let removed = remove()
    require(
      registered.map(core.waitUntilDone) != false && delivery?.waitUntilDone() != false,
      """
      removeAndWait() waits until its handler is not running, and was called inside that handler, \
      where it would wait for itself: call remove().
      """)
    return removed
  }

  /// Removes the handler and waits for its last call, as ``removeAndWait()``, but without blocking the thread
  /// of the task: it starts a thread that waits.
  @discardableResult
  public func removed() async -> Bool {
    let removed = remove()
    await withCheckedContinuation { continuation in
      startThread(named: "evc-removed") { [self] in
        // Both return true, since this thread is inside no handler.
        _ = registered.map(core.waitUntilDone)
        _ = delivery?.waitUntilDone()
        continuation.resume()
      }
    }
    return removed
  }
}
