// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The scheduler in pure Swift: a heap under a mutex, and a thread that sleeps until the next deadline.
final class LockingScheduler: SchedulerCore, @unchecked Sendable {
  // What changes is guarded by the monitor. It is not held while a timer fires or is dropped, since something
  // of the user's may end there.
  private let monitor = Monitor()
  private let isDriven: Bool
  private let heap = TimerHeap<EventScheduleHandle>()
  private var isClosed = false

  /// Unless it is driven, it has a thread, which keeps it until it is closed.
  init(isDriven: Bool) {
    self.isDriven = isDriven
    if !isDriven { startThread(named: "evc-scheduler") { self.run() } }
  }

  func add(_ timer: EventScheduleHandle, at deadline: UInt64) -> Bool {
    let (isOpen, isFirst) = monitor.withLock {
      let isFirst = deadline < nextLocked
      if !isClosed { heap.insert(timer, at: deadline) }
      return (!isClosed, isFirst)
    }
    // If the thread is awake, it looks once more before it sleeps.
    if isFirst { monitor.wake() }
    return isOpen
  }

  func withdraw(_ timer: EventScheduleHandle) {
    monitor.withLock { if timer.position >= 0 { heap.remove(at: timer.position) } }
  }

  func close() {
    monitor.withLock { isClosed = true }
    monitor.wakeAll()
    if isDriven { _ = runDue(at: 0) }
  }

  // Two threads are in here only while it closes: then both drop, but for a timer that is firing.
  func runDue(at now: UInt64) -> Int { monitor.withLock { work(at: now) } }

  var nextDeadline: UInt64 { monitor.withLock { nextLocked } }
  private var nextLocked: UInt64 { heap.firstDeadline ?? .max }

  /// The thread's life.
  private func run() {
    sleepWithoutSlack()
    monitor.withLock {
      while true {
        _ = work(at: monotonicNanoseconds())
        if isClosed { return }
        _ = monitor.wait(until: heap.firstDeadline)
      }
    }
  }

  /// Fires what is due, in order, and returns how many timers that were; once it is closed, drops everything.
  /// The monitor is locked before and after.
  private func work(at now: UInt64) -> Int {
    var fired = 0
    while let deadline = heap.firstDeadline, isClosed || deadline <= now {
      var timer: EventScheduleHandle? = heap.remove(at: 0)
      let drops = isClosed
      monitor.unlock()
      var next: UInt64 = 0
      if drops { timer?.drop() } else { (next, fired) = (timer?.fire(deadline) ?? 0, fired + 1) }
      // Here, if this is its end: what its event carries may be the user's.
      if next <= deadline { timer = nil }
      monitor.lock()
      // A cancel changes the state before it withdraws: either it is seen here, or it finds the timer in the heap.
      if let waiting = timer, waiting.state == .waiting {
        heap.insert(waiting, at: next)
      } else if timer != nil {
        // It was cancelled meanwhile, and this may be its end, too.
        monitor.unlock()
        timer = nil
        monitor.lock()
      }
    }
    return fired
  }
}

extension EventScheduleHandle: HeapTimer {
  final var position: Int {
    get { Int(truncatingIfNeeded: ticket) }
    set { ticket = UInt64(truncatingIfNeeded: newValue) }
  }
}
