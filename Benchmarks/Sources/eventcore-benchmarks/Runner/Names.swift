// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The shapes, by the names that the results file uses.
enum Shape: String, CaseIterable {
  case oneToOne = "one-to-one"
  case batch64 = "batch-64"
  case fourToOne = "four-to-one"
  case eightHandlers = "eight-handlers"
  case eightMailboxes = "eight-mailboxes"
  case randomLane = "random-lane"
  case idleWake = "idle-wake"
  case idleWakeSpinningProducer = "idle-wake-spinning-producer"
  case spinOneWay = "spin-one-way"
  case allocations
  case timersInsert = "timers-insert"
  case timersCancel = "timers-cancel"
  case timersLateMedian = "timers-late-p50"
  case timersLate99 = "timers-late-p99"
  /// Alternatives inside the core; runs only when it is asked for.
  case choices

  var unit: String {
    switch self {
    case .oneToOne, .batch64, .fourToOne, .randomLane, .choices: "ns/event"
    case .eightHandlers, .eightMailboxes: "ns/delivery"
    case .idleWake, .idleWakeSpinningProducer: "ns, p50"
    case .spinOneWay: "ns, one way"
    case .allocations: "allocations/event"
    case .timersInsert, .timersCancel: "ns"
    case .timersLateMedian: "ns late, p50"
    case .timersLate99: "ns late, p99"
    }
  }
}

/// The subjects, by the names that the results file uses.
enum Subject: String, CaseIterable {
  case lockFree
  case locking
  case rawC = "raw-c"
  case mutexSwap = "mutex-swap"
  case dispatchQueue = "dispatch-queue"
  case notificationCenter = "notification-center"
  case asyncStream = "async-stream"
  case actor
  case nio
  case openCombine = "opencombine"
  case futex
  case cacheLine = "cache-line"
  case dispatchSource = "dispatch-source"
  case coreInbox = "core-inbox"
  case coreInboxAlone = "core-inbox-alone"
  case calledWfcq = "called-wfcq"
  case calledWfcqAlone = "called-wfcq-alone"
  case timerHeapInsert = "timer-heap-insert"
  case timerHeapCancel = "timer-heap-cancel"
  case timerHeapFire = "timer-heap-fire"
  case timerHeapLongest = "timer-heap-longest"
  case timerWheelInsert = "timer-wheel-insert"
  case timerWheelCancel = "timer-wheel-cancel"
  case timerWheelFire = "timer-wheel-fire"
  case timerWheelLongest = "timer-wheel-longest"

  /// Calls the handlers on the thread that posts, so that nothing crosses threads.
  var isSynchronous: Bool { self == .notificationCenter || self == .openCombine }
}
