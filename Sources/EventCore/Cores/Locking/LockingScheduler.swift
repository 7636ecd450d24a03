// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The scheduler in pure Swift: a heap under a mutex, and a thread that sleeps until the next deadline.
final class LockingScheduler: SchedulerCore, @unchecked Sendable {
  // What changes is guarded by the monitor. It is not held while a timer fires or is dropped, since something
  // of the user's may end there.
  private let monitor = Monitor()
  private let isDriven: Bool
  private let heap = TimerHeap<EventScheduleHandle>()
  /// What the thread sleeps until; 0 if it is awake, or if there is none.
  private var sleepsUntil: UInt64 = 0
  private var isClosed = false
  /// Whether a thread is inside of `runDue`.
  private var isRunning = false

  /// Unless it is driven, it has a thread, which keeps it until it is closed.
  init(isDriven: Bool) {
    self.isDriven = isDriven
    if !isDriven { startThread(named: "evc-scheduler") { self.run() } }
  }

  func add(_ timer: EventScheduleHandle, at deadline: UInt64) -> Bool {
    monitor.lock()
    let isOpen = !isClosed
    if isOpen { heap.insert(timer, at: deadline) }
    let isEarlier = deadline < sleepsUntil
    monitor.unlock()
    if isEarlier { monitor.wake() }
    return isOpen
  }

  func withdraw(_ timer: EventScheduleHandle) {
    monitor.lock()
    if timer.position >= 0 { heap.remove(at: timer.position) }
    monitor.unlock()
  }

  func close() {
    monitor.lock()
    isClosed = true
    monitor.unlock()
    monitor.wakeAll()
    if isDriven { _ = runDue(at: 0) }
  }

  func runDue(at now: UInt64) -> Int {
    monitor.lock()
    defer { monitor.unlock() }
    // A thread that is inside already goes on until nothing is left to do.
    guard !isRunning else { return 0 }
    isRunning = true
    defer { isRunning = false }
    return work(at: now)
  }

  var nextDeadline: UInt64 {
    monitor.lock()
    defer { monitor.unlock() }
    return heap.firstDeadline ?? .max
  }

  /// The thread's life.
  private func run() {
    sleepWithoutSlack()
    monitor.lock()
    while true {
      _ = work(at: monotonicNanoseconds())
      if isClosed { break }
      sleepsUntil = heap.firstDeadline ?? .max
      _ = monitor.wait(until: heap.firstDeadline)
      sleepsUntil = 0
    }
    monitor.unlock()
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
      if let timer, timer.state == .waiting { heap.insert(timer, at: next) }
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
