// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// An event thread whose callbacks run on the MainActor.
///
/// ```swift
/// final class StatusBar: UIEventThread, @unchecked Sendable {
///   override func registerEventListeners() {
///     addEventCallback(StatusBar.onTemperature)
///   }
///
///   @MainActor func onTemperature(_ event: TemperatureEvent) { print(event) }
/// }
/// ```
///
/// A closure that touches what is the MainActor's says so; without it the compiler takes it for one of
/// any event thread, although it runs on the MainActor all the same. (In Swift 5 mode a parenthesis right
/// behind `@MainActor` would be the attribute's, so that `@Sendable` stands between.)
///
/// ```swift
/// statusBar.addEventCallback { @MainActor @Sendable (event: TemperatureEvent) in
///   label.text = "\(event.temperatureInCelsius) °C"
/// }
/// ```
///
/// It has a mailbox of its own, like every event thread, but no thread: what waits is handled on
/// the main queue, one event at a time, the most urgent first (D1 to D3), in batches of at most 64
/// that let the main thread do other things in between.
///
/// Somebody has to serve the main queue. In an application that is its run loop. A program without
/// one either has an `async` main function, which serves it whenever it waits (`await`), or ends
/// its main function with `dispatchMain()`, or with `RunLoop.main.run()`. Where nobody does,
/// ``EventThread/eventCount`` grows with every event; ``EventThread/cancel()`` and the last release free
/// what waits all the same.
open class UIEventThread: EventThread, @unchecked Sendable {
  // Nothing is stored here beside what an EventThread stores. A subclass guards its own state.

  /// Makes the mailbox and calls ``EventThread/registerEventListeners()``.
  ///
  /// - Parameters:
  ///   - central: Where its events are dispatched.
  ///   - waitStrategy: Ignored: it has no thread that could wait.
  ///   - name: Ignored: it has no thread.
  ///
  /// **Threads**: any; its callbacks run on the MainActor wherever it was made.
  public override init(
    on central: EventCentral = .shared, waitStrategy: EventWaitStrategy = .park,
    name: String? = nil
  ) {
    super.init(
      on: central,
      pump: ConsumerPump(QueueDriver(.main), batch: ExecutionContexts.courteousBatch))
  }

  /// Makes one on the shared central, as the form with parameters. **Threads**: any.
  public required init() {
    super.init(
      on: .shared,
      pump: ConsumerPump(QueueDriver(.main), batch: ExecutionContexts.courteousBatch))
  }

  /// Ends it after it has handled what waits, as the form of ``EventThread``.
  ///
  /// **Threads**: any. On the main thread it handles what waits there and then. Inside one of its
  /// own callbacks it would wait for itself, and traps.
  @available(*, noasync, message: "It blocks its thread: write await drain(until:).")
  @discardableResult
  public override func drain(until deadline: DispatchTime = .distantFuture) -> Bool {
    guard MainQueue.isCurrent, !consumer.isCurrent, let pump = consumer.pump else {
      return super.drain(until: deadline)
    }
    consumer.close(whenEmpty: true)
    while !consumer.ended.wait(until: 0) {
      guard DispatchTime.now() < deadline else {
        giveUp()
        return false
      }
      // A job of the pump's, before its turn. Somebody may be freeing a removed callback just now.
      if !pump.perform() { yieldThread() }
    }
    return finish()
  }

  /// Waits until it has ended. Does not end it.
  ///
  /// **Threads**: any but the main thread, on which it would never end, unless it has ended
  /// already.
  @available(*, noasync, message: "It blocks its thread: write await join().")
  public override func join() {
    require(
      !MainQueue.isCurrent || consumer.isCurrent || consumer.ended.wait(until: 0),
      """
      join() waits for the end of a UIEventThread, whose callbacks run on the main thread, and was called \
      there, where it would wait for itself: call drain(until:) or cancel().
      """)
    super.join()
  }
}

extension UIEventThread {
  /// Has a closure or a method of the MainActor called for every event of a type, with its priority
  /// and the time of its dispatch.
  ///
  /// - Parameters: As for the forms of ``EventThread``. A bound method retains this object until
  ///   ``EventThread/cancel()``; a method without its object does not.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  public func addEventCallback<E: Eventable>(
    _ callback:
      @escaping @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> any EventListenerHandling {
    add(
      HandlerCallback(onMain: callback),
      HandlerInterest(interest, maximumAge: maximumAge, onMain: customFilter))
  }

  /// Has a closure or a method of the MainActor called for every event of a type; the clock is not
  /// read for it.
  ///
  /// All else is as for the form with three arguments.
  @inlinable
  @discardableResult
  public func addEventCallback<E: Eventable>(
    _ callback: @escaping @MainActor @Sendable (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> any EventListenerHandling {
    add(
      HandlerCallback(onMain: callback),
      HandlerInterest(interest, maximumAge: maximumAge, onMain: customFilter))
  }

  /// Has a method of this object on the MainActor called for every event of a type, without
  /// retaining the object.
  ///
  /// All else is as for the methods of an ``EventThread``; a filter runs on the MainActor, too.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addEventCallback<Owner: UIEventThread, E: Eventable>(
    _ method: @escaping @MainActor (Owner) -> @MainActor (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> any EventListenerHandling {
    requireOwner(Owner.self)
    return add(
      HandlerCallback(onMain: method),
      HandlerInterest(interest, maximumAge: maximumAge, onMain: customFilter))
  }

  /// Has a method of this object on the MainActor called for every event of a type, with its
  /// priority and the time of its dispatch, without retaining the object.
  ///
  /// All else is as for the methods of an ``EventThread``; a filter runs on the MainActor, too.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addEventCallback<Owner: UIEventThread, E: Eventable>(
    _ method:
      @escaping @MainActor (Owner) ->
      @MainActor (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> any EventListenerHandling {
    requireOwner(Owner.self)
    return add(
      HandlerCallback(onMain: method),
      HandlerInterest(interest, maximumAge: maximumAge, onMain: customFilter))
  }
}
