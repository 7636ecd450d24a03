// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A gate that opens once and stays open.
final class Latch: @unchecked Sendable {
  // Guarded by the monitor.
  private let monitor = Monitor()
  private var hasOpened = false
  private var waiters: [Waiter] = []

  /// A task that waits, or a thread with a clock.
  private final class Waiter: @unchecked Sendable {
    // Guarded by the latch's monitor.

    /// Nil before it waits and after it was resumed.
    var continuation: CheckedContinuation<Bool, Never>?
    /// Ends its timer.
    var timer: (@Sendable () -> Void)?
    /// Whether its task was cancelled, which may happen before it waits, or its alarm has rung.
    var isOver = false
  }

  /// Whether `wait` would return at once. Any thread.
  var isOpen: Bool { monitor.withLock { hasOpened } }

  /// Opens the gate. Any thread.
  func open() {
    let waiting = monitor.withLock {
      hasOpened = true
      defer { waiters = [] }
      return waiters
    }
    monitor.wakeAll()
    for waiter in waiting { resume(waiter) }
  }

  /// Waits until the gate is open. Any thread.
  func wait() {
    _ = wait(until: nil)
  }

  /// Waits until the gate is open, or until a time on a clock; nil is the monotonic one. True if it is open.
  func wait(until deadline: UInt64?, by clock: CentralClock? = nil) -> Bool {
    if let clock, let deadline { return wait(untilAlarm: deadline, clock) }
    monitor.lock()
    defer { monitor.unlock() }
    while !hasOpened {
      guard monitor.wait(until: deadline) else { return hasOpened }
    }
    return true
  }

  private func wait(untilAlarm deadline: UInt64, _ clock: CentralClock) -> Bool {
    while !isOpen, clock.now < deadline {
      // An alarm rings once, and may be early.
      let waiter = Waiter()
      let cancel = clock.alarm(at: deadline) {
        self.monitor.withLock { waiter.isOver = true }
        self.monitor.wakeAll()
      }
      monitor.lock()
      // Looked at once it is set: a clock that stands still rings for no time that has passed.
      while !hasOpened, !waiter.isOver, clock.now < deadline { _ = monitor.wait(until: nil) }
      monitor.unlock()
      cancel()
    }
    return isOpen
  }

  // MARK: From a task, without blocking its thread

  /// Returns when the gate is open, also in a task that is cancelled.
  func opened() async {
    _ = await opened(Waiter(), until: nil)
  }

  /// Returns when the gate is open, at a time on a clock, nil being the monotonic one, or when the task is
  /// cancelled. True if it is open.
  func opened(until deadline: UInt64?, by clock: CentralClock? = nil) async -> Bool {
    while true {
      let waiter = Waiter()
      let isOpen = await withTaskCancellationHandler {
        await opened(waiter, until: deadline, by: clock)
      } onCancel: {
        monitor.withLock { waiter.isOver = true }
        resume(waiter)
      }
      // An alarm rings once, and may be early.
      guard !isOpen, let clock, let deadline, clock.now < deadline, !Task.isCancelled else { return isOpen }
    }
  }

  private func opened(_ waiter: Waiter, until deadline: UInt64?, by clock: CentralClock? = nil) async -> Bool {
    await withCheckedContinuation { continuation in
      monitor.lock()
      var waits = !hasOpened && !waiter.isOver
      if waits {
        waiter.timer = deadline.flatMap { timer(for: waiter, at: $0, clock) }
        // Looked at once it is set: a clock that stands still rings for no time that has passed.
        if let clock, let deadline, clock.now >= deadline {
          waiter.timer?()
          waits = false
        } else {
          waiter.continuation = continuation
          waiters.append(waiter)
        }
      }
      let isOpen = hasOpened
      monitor.unlock()
      if !waits { continuation.resume(returning: isOpen) }
    }
  }

  /// Resumes a waiter at a time. Returns what ends that; nil if no timer is needed.
  private func timer(
    for waiter: Waiter, at deadline: UInt64, _ clock: CentralClock?
  ) -> (@Sendable () -> Void)? {
    let ring: @Sendable () -> Void = { [weak self, weak waiter] in
      guard let self, let waiter else { return }
      self.resume(waiter)
    }
    if let clock { return clock.alarm(at: deadline, ring) }
    // Dispatch takes a later deadline for a time of day. It is 292 years after the machine's start.
    guard deadline <= Int64.max else { return nil }
    // Dispatch's sources are used from any thread.
    nonisolated(unsafe) let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.setEventHandler(handler: ring)
    timer.schedule(deadline: DispatchTime(uptimeNanoseconds: deadline))
    timer.activate()
    return { timer.cancel() }
  }

  /// Resumes a waiter, unless it was resumed already.
  private func resume(_ waiter: Waiter) {
    monitor.lock()
    let isOpen = hasOpened
    waiters.removeAll { $0 === waiter }
    let (continuation, timer) = (waiter.continuation, waiter.timer)
    (waiter.continuation, waiter.timer) = (nil, nil)
    monitor.unlock()
    timer?()
    continuation?.resume(returning: isOpen)
  }
}

extension DispatchTime {
  /// The deadline of a latch; nil for `.distantFuture`.
  var limit: UInt64? { self == .distantFuture ? nil : uptimeNanoseconds }
}
