// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A registered callback; ends it.
///
/// Letting go of the handle changes nothing: the callback stays until it is removed or its thread
/// ends.
public final class EventCallbackHandle: Sendable {
  private let handler: HandlerState
  let consumer: Consumer
  private let receiver: Receiver?

  init(_ handler: HandlerState, _ consumer: Consumer, _ receiver: Receiver?) {
    self.handler = handler
    self.consumer = consumer
    self.receiver = receiver
  }

  /// The consumer and what it runs, to look whether a call is running.
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
    handler.skippedCount + (receiver.map(consumer.supersededCount) ?? 0)
  }

  /// Ends the callback: after the return no further call of it begins (D6). One that runs goes on.
  ///
  /// - Returns: False if it had ended already: removed before, or its thread has ended.
  ///
  /// **Threads**: any, also inside the callback itself.
  @discardableResult
  public func remove() -> Bool {
    guard let receiver else { return false }
    return consumer.remove(handler, of: receiver)
  }

  /// Ends the callback and returns when no call of it is running (D6).
  ///
  /// - Returns: False if it had ended already; a call that still runs is waited for all the same.
  ///
  /// **Threads**: any. Inside the callback itself it would wait for itself, and traps; two callbacks
  /// that wait for the end of each other wait for ever.
  @available(*, noasync, message: "It blocks its thread: write await removed().")
  @discardableResult
  public func removeAndWait() -> Bool {
    let removed = remove()
    consumer.waitUntilDone(handler)
    return removed
  }

  /// Ends the callback and returns when no call of it is running (D6), without blocking the thread of
  /// the task. As ``EventListenerHandling/removed()``.
  @discardableResult
  public func removed() async -> Bool {
    let removed = remove()
    await consumer.untilDone(handler)
    return removed
  }
}
