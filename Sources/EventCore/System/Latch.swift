// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A gate that opens once and stays open.
final class Latch: @unchecked Sendable {
  // Guarded by the monitor.
  private let monitor = Monitor()
  private var hasOpened = false
  private var waiters: [Waiter] = []

  /// A task that waits.
  private final class Waiter: @unchecked Sendable {
    // Guarded by the latch's monitor.

    /// Nil before it waits and after it was resumed.
    var continuation: CheckedContinuation<Bool, Never>?
    var timer: (any DispatchSourceTimer)?
    /// Whether its task was cancelled, which may happen before it waits.
    var isCancelled = false
  }

  /// Whether `wait` would return at once. Any thread.
  var isOpen: Bool {
    monitor.lock()
    defer { monitor.unlock() }
    return hasOpened
  }

  /// Opens the gate. Any thread.
  func open() {
    monitor.lock()
    hasOpened = true
    let waiters = waiters
    self.waiters = []
    monitor.unlock()
    monitor.wakeAll()
    for waiter in waiters { resume(waiter) }
  }

  /// Waits until the gate is open. Any thread.
  func wait() {
    _ = wait(until: nil)
  }

  /// Waits until the gate is open, or until a time on the monotonic clock. True if it is open.
  func wait(until deadline: UInt64?) -> Bool {
    monitor.lock()
    defer { monitor.unlock() }
    while !hasOpened {
      guard monitor.wait(until: deadline) else { return hasOpened }
    }
    return true
  }

  // MARK: From a task, without blocking its thread

  /// Returns when the gate is open, also in a task that is cancelled.
  func opened() async {
    _ = await opened(Waiter(), until: nil)
  }

  /// Returns when the gate is open, at a time on the monotonic clock, or when the task is cancelled.
  /// True if it is open.
  func opened(until deadline: UInt64?) async -> Bool {
    let waiter = Waiter()
    return await withTaskCancellationHandler {
      await opened(waiter, until: deadline)
    } onCancel: {
      monitor.lock()
      waiter.isCancelled = true
      monitor.unlock()
      resume(waiter)
    }
  }

  private func opened(_ waiter: Waiter, until deadline: UInt64?) async -> Bool {
    await withCheckedContinuation { continuation in
      monitor.lock()
      let waits = !hasOpened && !waiter.isCancelled
      if waits {
        waiter.continuation = continuation
        waiters.append(waiter)
        // Dispatch takes a later deadline for a time of day. It is 292 years after the machine's start, so
        // no timer is needed.
        waiter.timer = deadline.flatMap { $0 > Int64.max ? nil : timer(for: waiter, at: $0) }
      }
      let isOpen = hasOpened
      monitor.unlock()
      if !waits { continuation.resume(returning: isOpen) }
    }
  }

  private func timer(for waiter: Waiter, at deadline: UInt64) -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.setEventHandler { [weak self, weak waiter] in
      guard let self, let waiter else { return }
      self.resume(waiter)
    }
    timer.schedule(deadline: DispatchTime(uptimeNanoseconds: deadline))
    timer.activate()
    return timer
  }

  /// Resumes a waiter, unless it was resumed already.
  private func resume(_ waiter: Waiter) {
    monitor.lock()
    let isOpen = hasOpened
    waiters.removeAll { $0 === waiter }
    let (continuation, timer) = (waiter.continuation, waiter.timer)
    (waiter.continuation, waiter.timer) = (nil, nil)
    monitor.unlock()
    timer?.cancel()
    continuation?.resume(returning: isOpen)
  }
}
