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
/// A closure that uses state of the MainActor has to be marked `@MainActor`. A closure without the mark runs
/// on the MainActor, too, but the compiler does not know that. (`@Sendable` stands behind the mark because
/// in Swift 5 mode a parenthesis there would belong to the attribute.)
///
/// ```swift
/// statusBar.addEventCallback { @MainActor @Sendable (event: TemperatureEvent) in
///   label.text = "\(event.temperatureInCelsius) °C"
/// }
/// ```
///
/// It has a mailbox, like every event thread, but no thread. The events are handled on the main queue, one
/// at a time, the most urgent first (D1 to D3), about 64 in a row at most, after which the main thread can do
/// other work.
///
/// The program has to serve the main queue. In an application the run loop does. A program without one
/// either has an `async` main function, which serves the queue whenever it awaits, or ends its main function
/// with `dispatchMain()` or `RunLoop.main.run()`. If nobody serves the queue, ``EventThread/eventCount``
/// grows with every event; ``EventThread/cancel()`` and the last release free the events all the same.
open class UIEventThread: EventThread, @unchecked Sendable {
  // It adds no stored properties. A subclass guards its own state.

  /// Makes the mailbox and calls ``EventThread/registerEventListeners()``.
  ///
  /// - Parameters:
  ///   - central: Where its events are dispatched.
  ///   - mailbox: How many events may wait, and what becomes of more.
  ///   - waitStrategy: Ignored, since there is no thread.
  ///   - name: Ignored likewise.
  ///
  /// **Threads**: any; the callbacks run on the MainActor in any case.
  public override init(
    on central: EventCentral = .shared, mailbox: EventMailboxCapacity = .unbounded,
    waitStrategy: EventWaitStrategy = .park, name: String? = nil
  ) {
    super.init(on: central, mailbox: mailbox, pump: Self.makePump(on: central))
  }

  private static func makePump(on central: EventCentral) -> ConsumerPump {
    let driver = QueueDriver(.main)
    return central.serial?.makePump(insteadOf: driver)
      ?? ConsumerPump(driver, batch: ExecutionContexts.courteousBatch)
  }

  /// Makes a mailbox on the shared central, as the form with parameters. **Threads**: any.
  public required init() {
    super.init(on: .shared, pump: Self.makePump(on: .shared))
  }

  /// Ends the object after it has handled the events that wait, as the form of ``EventThread``.
  ///
  /// **Threads**: any. On the main thread this call handles the events itself. Inside one of the object's
  /// callbacks it would wait for itself, and traps. In a task on the MainActor `await drain(until:)` returns, after its
  /// deadline, once the main queue has done the job that it is at, of about 64 events at most.
  @available(*, noasync, message: "It blocks its thread: write await drain(until:) in an async function.")
  @discardableResult
  public override func drain(until deadline: DispatchTime = .distantFuture) -> Bool {
    guard MainActor.isCurrent, !consumer.isCurrent, central.serial == nil, let pump = consumer.pump else {
      return super.drain(until: deadline)
    }
    beginDrain()
    var round = 0
    while !consumer.ended.wait(until: 0) {
      guard central.now < deadline else {
        cancel()
        return false
      }
      // Runs a job of the pump before its turn. It is refused while another thread uses the consumer, to
      // free a removed callback.
      if !pump.perform(until: deadline.limit ?? .max) { yieldThread(round: &round) }
    }
    return finish()
  }

  /// Waits until the object has ended. It does not end the object.
  ///
  /// **Threads**: any but the main thread, which would wait for itself; it traps there, unless the object
  /// has ended already.
  @available(*, noasync, message: "It blocks its thread: write await join() in an async function.")
  public override func join() {
    require(
      !MainActor.isCurrent || central.serial != nil || consumer.isCurrent || consumer.ended.wait(until: 0),
      """
      join() waits for the end of a UIEventThread, whose callbacks run on the main thread, and was called \
      there, where it would wait for itself: call drain(until:) or cancel().
      """)
    super.join()
  }
}

extension UIEventThread {
  /// Registers a closure or a bound method of the MainActor that is called for every event of a type, with
  /// the event's priority and the time of its dispatch. All else is as for the closures of an
  /// ``EventThread``; a filter runs on the MainActor, too.
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

  /// Registers a closure or a bound method of the MainActor that is called for every event of a type. All
  /// else is as for the form with three parameters. The clock is not read for it, unless it has an age
  /// or a filter.
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

  /// Registers a method of this object on the MainActor, which does not retain the object. All else is as
  /// for the methods of an ``EventThread``; a filter runs on the MainActor, too.
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

  /// Registers a method of this object on the MainActor that also takes the event's priority and the time of
  /// its dispatch. All else is as for the method that takes the event alone.
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
