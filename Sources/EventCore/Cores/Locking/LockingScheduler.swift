// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The scheduler in pure Swift: a heap under a mutex, whose condition the thread sleeps on until
/// the next deadline.
final class LockingScheduler: SchedulerCore, @unchecked Sendable {
  // What changes is guarded by the monitor, which is open while a timer fires or is dropped: both
  // may be the end of something of the user's.
  private let monitor = Monitor()
  private let clock: ManualClock?
  private var heap = TimerHeap()
  /// The timer that fires.
  private var firing: EventScheduleHandle?
  /// What the thread sleeps until; 0 while it is awake, or if there is none.
  private var sleepsUntil: UInt64 = 0
  private var isClosed = false
  /// Somebody fires or drops timers.
  private var isRunning = false

  private init(clock: ManualClock?) {
    self.clock = clock
  }

  /// Makes a scheduler and, without a manual clock, starts its thread, which keeps it until it is
  /// closed.
  static func make(clock: ManualClock?) -> LockingScheduler {
    let scheduler = LockingScheduler(clock: clock)
    if clock == nil {
      startThread(named: "evc-scheduler") {
        sleepWithoutSlack()
        scheduler.run()
      }
    }
    return scheduler
  }

  private var now: UInt64 { clock?.nanoseconds ?? monotonicNanoseconds() }

  func add(_ timer: EventScheduleHandle, at deadline: UInt64) -> Bool {
    monitor.lock()
    if isClosed {
      monitor.unlock()
      return false
    }
    heap.insert(timer, at: deadline)
    let isEarlier = deadline < sleepsUntil
    monitor.unlock()
    if isEarlier { monitor.wake() }
    return true
  }

  func withdraw(_ timer: EventScheduleHandle) {
    monitor.lock()
    if timer.position >= 0 {
      heap.remove(at: timer.position)
    } else if timer === firing {
      timer.isWithdrawn = true
    }
    monitor.unlock()
  }

  func close() {
    monitor.lock()
    isClosed = true
    monitor.unlock()
    monitor.wakeAll()
    if clock != nil { runDue(at: 0) }
  }

  func runDue(at now: UInt64) {
    monitor.lock()
    // If somebody is in here already, that one goes on until nothing is left to do.
    if !isRunning {
      isRunning = true
      work(at: now)
      isRunning = false
    }
    monitor.unlock()
  }

  /// The thread's life.
  private func run() {
    monitor.lock()
    while true {
      work(at: now)
      if isClosed { break }
      let next = heap.firstDeadline ?? .max
      sleepsUntil = next
      _ = monitor.wait(until: next == .max ? nil : next)
      sleepsUntil = 0
    }
    monitor.unlock()
  }

  /// Fires what is due, in order; drops all, once it is closed. The monitor is locked before and
  /// after, and open meanwhile.
  private func work(at now: UInt64) {
    while let deadline = heap.firstDeadline, isClosed || deadline <= now {
      let timer = heap.remove(at: 0)
      if isClosed {
        monitor.unlock()
        timer.drop()
        monitor.lock()
        continue
      }
      firing = timer
      monitor.unlock()
      let next = timer.fire(deadline)
      monitor.lock()
      firing = nil
      // A handle that goes here has no event any more, so that nothing of the user's ends with it.
      if next > deadline, !timer.isWithdrawn { heap.insert(timer, at: next) }
    }
  }
}
