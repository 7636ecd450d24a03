// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventPump {
  /// A file descriptor that is readable while something waits, for a loop that polls others, too.
  ///
  /// ```swift
  /// var polled = [
  ///   pollfd(fd: pump.fileDescriptor, events: Int16(POLLIN), revents: 0),
  ///   pollfd(fd: socket, events: Int16(POLLIN), revents: 0),
  /// ]
  /// while poll(&polled, 2, -1) > 0 {
  ///   if polled[0].revents != 0 { pump.run() }
  ///   if polled[1].revents != 0 { receive(from: socket) }
  /// }
  /// ```
  ///
  /// Poll it, level-triggered or edge-triggered, and do nothing else with it. It becomes readable with the first
  /// event after a run that left nothing, and stays so until a run leaves nothing. These two make a system call, and
  /// so does a run that leaves something, or comes to its limit or deadline, for an edge-triggered `epoll`; an event
  /// makes none. Now and then it is readable without an event, such as for a callback that another thread has removed, or
  /// after a limit or deadline that came with the last event: a run then handles nothing.
  ///
  /// It is an `eventfd` on Linux and a pipe elsewhere, made at the first use and closed with the pump. Of a pump that
  /// has ended it may be readable until the next run, and never again.
  ///
  /// **Threads**: those of the loop.
  public var fileDescriptor: Int32 { driver.descriptor(of: pump).reading }

  /// Waits until something waits for the pump. It handles nothing.
  ///
  /// - Parameter deadline: When to give up; nil is never. On a central with a clock of its own the time that is left
  ///   counts on that clock: a ``ManualClock`` has to be moved by another thread.
  /// - Returns: True if there is something to run: events, scheduled ones that are due for a central with
  ///   ``EventCentral/Timers/pumps``, or, as for ``fileDescriptor``, now and then nothing that a run handles. False at the
  ///   deadline, and at once if the pump has ended.
  ///
  /// **Threads**: those of the loop, which it blocks. Inside a callback of the pump it would wait for itself, and
  /// traps.
  ///
  /// **Complexity**: a system call if nothing waits, and none otherwise. On systems other than Linux it may return
  /// a millisecond late.
  @available(*, noasync, message: "It blocks its thread; in a task, pass a wakeUp closure and await what it does.")
  @discardableResult
  public func wait(until deadline: ContinuousClock.Instant? = nil) -> Bool {
    wait(until: deadline?.nanoseconds(on: central.basis) ?? .max)
  }

  /// Waits until something waits for the pump, or until a time on the central's clock, ``EventCentral/now``. All else
  /// is as for the form with an instant of the system's clock.
  @available(*, noasync, message: "It blocks its thread; in a task, pass a wakeUp closure and await what it does.")
  @discardableResult
  public func wait(until deadline: DispatchTime) -> Bool {
    wait(until: deadline.uptimeNanoseconds)
  }

  private func wait(until deadline: UInt64) -> Bool {
    require(
      !consumer.isCurrent,
      """
      EventPump.wait(until:) waits for events that the next run handles, and was called inside a callback of the \
      same pump, which that run would have to wait for: return from the callback.
      """)
    return driver.wait(for: pump, until: deadline)
  }

  /// How long until the next scheduled event of the central is due, on the central's clock: zero if one is due. Nil if
  /// none is scheduled, if the central's timers are not those of its pumps (``EventCentral/Timers/pumps``), and if the
  /// pump has ended.
  ///
  /// It is for a loop that sleeps by other means than ``wait(until:)-(ContinuousClock.Instant?)``, such as `poll`. If an
  /// earlier event is scheduled after this and before the next run, ``fileDescriptor`` becomes readable, and the
  /// wake-up closure is called.
  ///
  /// **Threads**: those of the loop. **Complexity**: a lock.
  public var timeUntilTimer: Duration? {
    guard !pump.hasEnded else { return nil }
    let (next, now) = (driver.nextTimer(), central.basis.now)
    return next == .max ? nil : .wholeNanoseconds(next - min(next, now))
  }
}
