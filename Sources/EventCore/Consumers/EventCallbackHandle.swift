// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The handle of an event thread's callback. The callback stays until it is removed or its thread ends,
/// even if the handle is released.
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

  /// Of the events of its type, for all callbacks of the thread that share it; nil if the thread had ended.
  var subscription: Subscription? { receiver?.subscription }

  /// Whether the callback can still be called.
  public var isActive: Bool { !handler.isEnded }

  /// How many events its interest has skipped so far (``EventListenerInterest``).
  ///
  /// For a latest-only callback in a pool with an ``EventPoolSharedBalancer`` only those that were sent to
  /// its thread alone: the others are skipped for all threads together, and counted in
  /// ``EventPool/statistics``.
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
