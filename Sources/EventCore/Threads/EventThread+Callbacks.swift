// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension EventThread {
  /// Has a closure called for every event of a type, with its priority and the time of its dispatch.
  ///
  /// - Parameters:
  ///   - callback: Runs on this thread. It is retained until it is removed or the thread ends: a bound
  ///     method or a closure over this thread keeps the thread alive until ``cancel()``.
  ///   - type: The exact type of event.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback. Several callbacks for one type are called in the order of
  /// their registration; each gets the events that are dispatched after this call returns (D4).
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<E: Eventable>(
    _ callback: @escaping @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self
  ) -> EventCallbackHandle {
    let body: EventHandler.Body = { payload, lane, time, _, take in
      let event = payload.assumingMemoryBound(to: E.self)
      let priority = Lane(index: lane).priority
      let dispatchTime = DispatchTime(uptimeNanoseconds: time)
      if take {
        callback(event.move(), priority, dispatchTime)
      } else {
        callback(event.pointee, priority, dispatchTime)
      }
    }
    return addHandler(
      EventHandler(isTimed: true, needsOwner: false, body: body), key: eventKey(E.self),
      drop: payloadDrop(E.self))
  }

  /// Has a closure called for every event of a type; the clock is not read for it.
  ///
  /// - Parameters:
  ///   - callback: Runs on this thread. It is retained until it is removed or the thread ends: a bound
  ///     method or a closure over this thread keeps the thread alive until ``cancel()``.
  ///   - type: The exact type of event.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: as for the form with three parameters.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<E: Eventable>(
    _ callback: @escaping @Sendable (_ event: E) -> Void, forEventType type: E.Type = E.self
  ) -> EventCallbackHandle {
    let body: EventHandler.Body = { payload, _, _, _, take in
      let event = payload.assumingMemoryBound(to: E.self)
      if take {
        callback(event.move())
      } else {
        callback(event.pointee)
      }
    }
    return addHandler(
      EventHandler(isTimed: false, needsOwner: false, body: body), key: eventKey(E.self),
      drop: payloadDrop(E.self))
  }

  /// Has a method of this thread called for every event of a type, without retaining the thread.
  ///
  /// ```swift
  /// addEventCallback(TemperatureProcessor.onTemperature)
  /// ```
  ///
  /// - Parameter method: A method of the thread's class, named without its object.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<Owner: EventThread, E: Eventable>(
    _ method: @escaping @Sendable (Owner) -> (_ event: E) -> Void
  ) -> EventCallbackHandle {
    requireOwner(Owner.self)
    let body: EventHandler.Body = { payload, _, _, owner, take in
      let event = payload.assumingMemoryBound(to: E.self)
      // The thread is of this class: checked at the registration.
      owner.unsafelyUnwrapped._withUnsafeGuaranteedRef { thread in
        let call = method(unsafeDowncast(thread, to: Owner.self))
        if take {
          call(event.move())
        } else {
          call(event.pointee)
        }
      }
    }
    return addHandler(
      EventHandler(isTimed: false, needsOwner: true, body: body), key: eventKey(E.self),
      drop: payloadDrop(E.self))
  }

  /// Has a method of this thread called for every event of a type, with its priority and the time of its
  /// dispatch, without retaining the thread.
  ///
  /// - Parameter method: A method of the thread's class, named without its object.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<Owner: EventThread, E: Eventable>(
    _ method: @escaping @Sendable (Owner) -> (
      _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
    ) -> Void
  ) -> EventCallbackHandle {
    requireOwner(Owner.self)
    let body: EventHandler.Body = { payload, lane, time, owner, take in
      let event = payload.assumingMemoryBound(to: E.self)
      let priority = Lane(index: lane).priority
      let dispatchTime = DispatchTime(uptimeNanoseconds: time)
      // The thread is of this class: checked at the registration.
      owner.unsafelyUnwrapped._withUnsafeGuaranteedRef { thread in
        let call = method(unsafeDowncast(thread, to: Owner.self))
        if take {
          call(event.move(), priority, dispatchTime)
        } else {
          call(event.pointee, priority, dispatchTime)
        }
      }
    }
    return addHandler(
      EventHandler(isTimed: true, needsOwner: true, body: body), key: eventKey(E.self),
      drop: payloadDrop(E.self))
  }

  @usableFromInline
  func addHandler(
    _ handler: EventHandler, key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?
  ) -> EventCallbackHandle {
    EventCallbackHandle(handler.state, consumer, consumer.add(handler, key: key, drop: drop))
  }

  @usableFromInline
  func requireOwner<Owner: EventThread>(_ type: Owner.Type) {
    precondition(
      self is Owner,
      """
      A method that is registered without its object is called on the thread it is registered with: \
      this thread is a \(Swift.type(of: self)), the method is one of \(type). Register it on a thread \
      of that class, or pass a closure.
      """)
  }
}

/// How a payload that nobody took is ended; nil for types that need no ending.
@inlinable
func payloadDrop<E: Eventable>(_ type: E.Type) -> ((UnsafeMutableRawPointer) -> Void)? {
  if _isPOD(type) {
    return nil
  }
  return { payload in payload.assumingMemoryBound(to: E.self).deinitialize(count: 1) }
}
