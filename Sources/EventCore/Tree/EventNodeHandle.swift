// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A registered handler of a node; ends it.
///
/// **Threads**: any, for every member, also inside the handler, but for ``removeAndWait()``.
///
/// **Ownership**: letting go of the handle changes nothing: the handler stays until it is removed
/// or its node ends. The handle keeps neither the node nor the handler's closure.
public final class EventNodeHandle: EventRegistration, Sendable {
  // Constant but for the atomics. `registration` is 0 until the handler is registered, and then never
  // changes. The handler's own closure may hold the handle, and nothing that the core holds for the
  // handle holds the closure: there is no cycle.

  private let core: any TreeCore.Type
  private let registration = Atomic<UInt>(0)
  /// How the handler comes to run elsewhere; nil on the thread that raises.
  let delivery: TreeDelivery?

  init(_ core: any TreeCore.Type, _ delivery: TreeDelivery?) {
    self.core = core
    self.delivery = delivery
  }

  deinit {
    if let registration = registered {
      core.release(registration)
    }
  }

  /// The registration of the core's, once it is there. Releasing, pairs with `registered`: whoever finds it
  /// finds it whole.
  func register(_ registration: UnsafeMutableRawPointer) {
    self.registration.store(UInt(bitPattern: registration), ordering: .releasing)
  }

  private var registered: UnsafeMutableRawPointer? {
    UnsafeMutableRawPointer(bitPattern: registration.load(ordering: .acquiring))
  }

  /// Where the handler runs; nil on the thread that raises.
  public var executesOn: EventListenerContext? { delivery?.place }

  /// Whether the handler can still be called. Once this is false no call of it begins any more
  /// (D6).
  public var isActive: Bool {
    registered.map(core.isActive) ?? true
  }

  /// Ends the handler, as ``EventRegistration/remove()``.
  ///
  /// - Returns: False if it had ended already: removed before, or its node has ended.
  @discardableResult
  public func remove() -> Bool {
    registered.map(core.remove) ?? false
  }

  /// Ends the handler and waits for its last call, as ``EventRegistration/removeAndWait()``: it sleeps
  /// until the raise that runs the handler goes on from it.
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

  /// Ends the handler and waits for its last call, as ``removeAndWait()``, without blocking the thread
  /// of the task: a thread that is started for it waits.
  @discardableResult
  public func removed() async -> Bool {
    let removed = remove()
    await withCheckedContinuation { continuation in
      startThread(named: "evc-removed") { [self] in
        // On a thread that is inside no handler both are true.
        _ = registered.map(core.waitUntilDone)
        _ = delivery?.waitUntilDone()
        continuation.resume()
      }
    }
    return removed
  }
}
