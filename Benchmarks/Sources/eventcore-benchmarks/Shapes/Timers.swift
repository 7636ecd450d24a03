// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import RawCore

// Events for later. A million wait, each at a time of its own in the far future; of these, 16,384
// at random are cancelled and as many scheduled anew.
//
//     main: schedule, cancel ──► scheduler: a million pending
//
// And how late one is, on an otherwise idle machine: set for 1 ms from now, the main thread sleeps.
//
//     main: schedule ... sleep ... scheduler's thread: note the time ──► wake main

private let churned = 1 << 14
private let ahead: UInt64 = 1_000_000

/// The candidates of all four shapes.
func timerCandidates(_ scale: Scale) -> [Candidate] {
  let churns: [Candidate] = [Shape.timersInsert, .timersCancel].flatMap { shape in
    let inserts = shape == .timersInsert
    func candidate(_ subject: Subject, _ make: @escaping () -> any Trial) -> Candidate {
      Candidate(
        shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size, make: make)
    }
    func churn<T: PendingTimers>(_ subject: Subject, _ make: @escaping () -> T) -> Candidate {
      candidate(subject) { Churn(make(), pending: scale.pendingTimers, inserts: inserts) }
    }
    return [
      churn(.lockFree) { EventCoreTimers(.lockFree) },
      churn(.locking) { EventCoreTimers(.locking) },
      candidate(.rawC) { RawChurn(pending: scale.pendingTimers, inserts: inserts) },
      churn(.dispatchQueue) { WorkItemTimers() },
      churn(.dispatchSource) { SourceTimers() },
    ]
  }
  let lates: [Candidate] = [Shape.timersLateMedian, .timersLate99].flatMap { shape in
    let quantile = shape == .timersLateMedian ? 0.5 : 0.99
    func late(
      _ subject: Subject, _ measure: @escaping (Int, UnsafeMutablePointer<UInt64>) -> Void
    ) -> Candidate {
      Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
        Lateness(scale.lateTimers, quantile, measure)
      }
    }
    let all = [
      late(.lockFree) { eventCoreLateness(.lockFree, $0, $1) },
      late(.locking) { eventCoreLateness(.locking, $0, $1) },
      late(.rawC) { evb_raw_lateness(UInt32($0), ahead, $1) },
      late(.dispatchQueue, asyncAfterLateness),
      late(.dispatchSource, sourceLateness),
    ]
    return evb_has_futex()
      ? all + [late(.futex) { evb_futex_lateness(UInt32($0), ahead, $1) }] : all
  }
  return churns + lates
}

// MARK: A million pending

/// Something that dispatches later, and can be told not to.
private protocol PendingTimers {
  associatedtype Timer
  func schedule(_ event: Event24, after nanoseconds: Int) -> Timer
  func cancel(_ timer: Timer)
}

private struct EventCoreTimers: PendingTimers {
  let central: EventCentral

  init(_ core: EventCentral.Core) { central = EventCentral(core: core) }

  func schedule(_ event: Event24, after nanoseconds: Int) -> EventScheduleHandle {
    event.scheduleQueue(at: .now() + .nanoseconds(nanoseconds), on: central)
  }

  func cancel(_ timer: EventScheduleHandle) {
    check(timer.cancel(), farFutureFired("cancel() came too late for one"))
  }
}

/// `asyncAfter` with a work item, which is the form that can be cancelled. What is cancelled stays
/// until its time.
private struct WorkItemTimers: PendingTimers {
  let queue = DispatchQueue(label: "timers")

  func schedule(_ event: Event24, after nanoseconds: Int) -> DispatchWorkItem {
    let item = DispatchWorkItem { blackHole(event) }
    queue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds), execute: item)
    return item
  }

  func cancel(_ timer: DispatchWorkItem) { timer.cancel() }
}

private struct SourceTimers: PendingTimers {
  let queue = DispatchQueue(label: "timers")

  func schedule(_ event: Event24, after nanoseconds: Int) -> any DispatchSourceTimer {
    let source = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
    source.setEventHandler { blackHole(event) }
    source.schedule(deadline: .now() + .nanoseconds(nanoseconds), leeway: .nanoseconds(0))
    source.activate()
    return source
  }

  func cancel(_ timer: any DispatchSourceTimer) { timer.cancel() }
}

private func blackHole(_ event: Event24) {
  fatalError(farFutureFired("event \(event.weight) came"))
}

private func farFutureFired(_ what: String) -> String {
  """
  The pending timers are set for a quarter of an hour ahead, so that none fires while it is measured; \
  \(what): look whether the machine slept, or the deadlines in this file are too near.
  """
}

/// S. Vigna's xorshift64*: the system's generator costs a system call.
private struct Xorshift: RandomNumberGenerator {
  private var state: UInt64 = 88_172_645_463_325_252

  mutating func next() -> UInt64 {
    state ^= state >> 12
    state ^= state << 25
    state ^= state >> 27
    return state &* 2_685_821_657_736_338_717
  }
}

private final class Churn<T: PendingTimers>: Trial {
  private let timers: T
  private let inserts: Bool
  private var pending: [T.Timer] = []
  private var random = Xorshift()

  init(_ timers: T, pending count: Int, inserts: Bool) {
    self.timers = timers
    self.inserts = inserts
    pending.reserveCapacity(count)
    for _ in 0..<count {
      pending.append(timers.schedule(Event24(number: 1), after: delay()))
    }
  }

  /// 1,000 to 1,100 seconds.
  private func delay() -> Int { .random(in: 1_000_000_000_000..<1_100_000_000_000, using: &random) }

  func run() -> Double {
    // Random places, each once: an odd stride over a power of two comes to no place twice.
    let first = Int.random(in: 0..<pending.count, using: &random)
    let stride = Int.random(in: 0..<pending.count, using: &random) | 1
    let places = (0..<churned).map { (first &+ $0 &* stride) & (pending.count - 1) }
    let delays = places.map { _ in delay() }
    let start = evb_now()
    for place in places {
      timers.cancel(pending[place])
    }
    let middle = evb_now()
    for (place, delay) in zip(places, delays) {
      pending[place] = timers.schedule(Event24(number: 1), after: delay)
    }
    let end = evb_now()
    return Double(inserts ? end - middle : middle - start) / Double(churned)
  }

  func end() {
    for timer in pending {
      timers.cancel(timer)
    }
    pending = []
  }
}

private final class RawChurn: Trial {
  private let timers: OpaquePointer
  private let inserts: Bool

  init(pending: Int, inserts: Bool) {
    timers = evb_timers_open(UInt64(pending))
    self.inserts = inserts
  }

  func run() -> Double {
    var (insert, cancel): (UInt64, UInt64) = (0, 0)
    evb_timers_churn(timers, UInt64(churned), &insert, &cancel)
    return Double(inserts ? insert : cancel) / Double(churned)
  }

  func end() { evb_timers_close(timers) }
}

// MARK: Lateness

private final class Lateness: Trial {
  private var values: [UInt64]
  private let quantile: Double
  private let measure: (Int, UnsafeMutablePointer<UInt64>) -> Void

  init(
    _ count: Int, _ quantile: Double,
    _ measure: @escaping (Int, UnsafeMutablePointer<UInt64>) -> Void
  ) {
    values = Array(repeating: 0, count: count)
    self.quantile = quantile
    self.measure = measure
  }

  func run() -> Double {
    values.withUnsafeMutableBufferPointer { measure($0.count, $0.baseAddress!) }
    return Double(values.sorted()[Int(Double(values.count) * quantile)])
  }

  func end() {}
}

/// A figure that another thread writes before it signals.
private final class Note: @unchecked Sendable {
  // The semaphore orders the two threads.
  var late: UInt64 = 0
  let semaphore = DispatchSemaphore(value: 0)
}

/// From the deadline to the handler, as for the others: through the mailbox of a thread.
private func eventCoreLateness(
  _ core: EventCentral.Core, _ count: Int, _ samples: UnsafeMutablePointer<UInt64>
) {
  let central = EventCentral(core: core)
  let thread = EventThread(on: central)
  let note = Note()
  thread.addEventCallback { (event: Event24) in
    note.late = evb_now() - event.weight
    note.semaphore.signal()
  }
  for index in 0..<count {
    let deadline = evb_now() + ahead
    Event24(number: deadline).scheduleQueue(
      at: DispatchTime(uptimeNanoseconds: deadline), on: central)
    note.semaphore.wait()
    samples[index] = note.late
  }
  thread.cancel()
}

private func asyncAfterLateness(_ count: Int, _ samples: UnsafeMutablePointer<UInt64>) {
  let queue = DispatchQueue(label: "timers", qos: .userInteractive)
  let note = Note()
  for index in 0..<count {
    let deadline = evb_now() + ahead
    queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: deadline)) {
      note.late = evb_now() - deadline
      note.semaphore.signal()
    }
    note.semaphore.wait()
    samples[index] = note.late
  }
}

private func sourceLateness(_ count: Int, _ samples: UnsafeMutablePointer<UInt64>) {
  let queue = DispatchQueue(label: "timers", qos: .userInteractive)
  let note = Note()
  for index in 0..<count {
    let deadline = evb_now() + ahead
    let source = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
    source.setEventHandler {
      note.late = evb_now() - deadline
      note.semaphore.signal()
    }
    source.schedule(
      deadline: DispatchTime(uptimeNanoseconds: deadline), leeway: .nanoseconds(0))
    source.activate()
    note.semaphore.wait()
    samples[index] = note.late
    source.cancel()
  }
}
