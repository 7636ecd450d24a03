// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A registered callback; ends it.
///
/// Letting go of the handle changes nothing: the callback stays until it is removed or its thread
/// ends.
final class EventCallbackHandle: Sendable {
  private let handler: HandlerState
  let consumer: Consumer
  private let receiver: Receiver?

  init(_ handler: HandlerState, _ consumer: Consumer, _ receiver: Receiver?) {
    self.handler = handler
    self.consumer = consumer
    self.receiver = receiver
  }

  var call: (consumer: Consumer, handler: HandlerState) { (consumer, handler) }

  /// Whether the callback can still be called.
  public var isActive: Bool { !handler.isEnded }

  /// How many events its interest has turned away so far (``EventListenerInterest``). 0 without
  /// one.
  ///
  /// Of a latest-only callback in a pool with an ``EventPoolSharedBalancer`` only those that were
  /// sent straight to its thread: the others were turned away for all threads together, and the
  /// pool's ``EventPool/statistics`` count them.
  ///
  /// **Threads**: any.
  public var skippedCount: UInt64 {
    handler.skippedCount + (receiver.map(consumer.registry.supersededCount) ?? 0)
  }

  /// Ends the callback, as ``EventRegistration/remove()``.
  ///
  /// - Returns: False if it had ended already: removed before, or its thread has ended.
  @discardableResult
  public func remove() -> Bool {
    guard let receiver else { return false }
    return consumer.remove(handler, of: receiver)
  }

  /// Ends the callback and waits for its last call, as ``EventRegistration/removeAndWait()``.
  @available(*, noasync, message: "It blocks its thread: write await removed().")
  @discardableResult
  public func removeAndWait() -> Bool {
    let removed = remove()
    consumer.waitUntilDone(handler)
    return removed
  }

  /// Ends the callback and waits for its last call, as ``EventListenerHandling/removed()``.
  @discardableResult
  public func removed() async -> Bool {
    let removed = remove()
    await consumer.untilDone(handler)
    return removed
  }
}
