// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore

// What tasks and actors do with events.
//
//     request-reply    task: pause, note the time, ask ──► listener: answers ──► task: note the time
//     executor-job     64 tasks ──► jobs of one actor, and back
//     executor-call    an actor ──► another one of the same executor, and back
//     executor-task    an actor ──► 64 tasks of its own, which wait until it does
//
// The futex of request-reply is woken twice, once for each direction. Of the other way back, most is what Swift's
// default executor takes to resume a task (idle-wake, async-stream). An actor of executor-job on the default executor
// runs on the thread of the task that calls it, so nothing crosses threads. In executor-call and executor-task the
// caller is on the executor in either case: the first takes no job, and each task of the second begins as one.

private struct Query: Eventable { var number: UInt64 }

private let gap: UInt64 = 200_000
private let tasks = 64

/// The candidates of both shapes.
func taskCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(_ shape: Shape, _ subject: Subject, _ make: @escaping () -> any Trial) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size, make: make)
  }
  var all = [
    candidate(.requestReply, .lockFree) { Requests(.lockFree, scale.wakes) },
    candidate(.requestReply, .locking) { Requests(.locking, scale.wakes) },
    candidate(.requestReply, .preferring) { Requests(.lockFree, scale.wakes, prefersThread: true) },
    candidate(.executorJob, .lockFree) { Jobs(scale.jobs, on: EventThread(on: EventCentral(core: .lockFree))) },
    candidate(.executorJob, .locking) { Jobs(scale.jobs, on: EventThread(on: EventCentral(core: .locking))) },
    candidate(.executorJob, .actor) { Jobs(scale.jobs, on: nil) },
    candidate(.executorCall, .lockFree) { Calls(scale.jobs, .lockFree) { await $0.call($1, $2) } },
    candidate(.executorCall, .locking) { Calls(scale.jobs, .locking) { await $0.call($1, $2) } },
    candidate(.executorCall, .actor) { Calls(scale.jobs, nil) { await $0.call($1, $2) } },
    candidate(.executorTask, .lockFree) { Calls(scale.jobs, .lockFree) { await $0.start($2) } },
    candidate(.executorTask, .locking) { Calls(scale.jobs, .locking) { await $0.start($2) } },
    candidate(.executorTask, .preferring) { Calls(scale.jobs, .lockFree, prefersThread: true) { await $0.start($2) } },
    candidate(.executorTask, .actor) { Calls(scale.jobs, nil) { await $0.start($2) } },
  ]
  if evb_has_futex() {
    all.append(candidate(.requestReply, .futex) { TwoWakes(scale.wakes) })
  }
  return all
}

extension Scale {
  fileprivate var jobs: Int { isQuick ? 50_000 : 200_000 }
}

/// Runs an asynchronous measurement, in a task that prefers `thread`, and waits for it.
private func wait(on thread: EventThread? = nil, for body: @escaping @Sendable () async -> Double) -> Double {
  let finish = Finish()
  let figure = Figure()
  finish.expect(1)
  Task.detached(executorPreference: thread) {
    figure.value = await body()
    finish.arrive()
  }
  _ = finish.wait()
  return figure.value
}

private final class Figure: @unchecked Sendable {
  // `Finish` orders the two threads.
  var value = 0.0
}

/// Requests one at a time, with pauses in which everybody falls asleep.
private final class Requests: Trial {
  private let central: EventCentral
  private let answerer: any EventListenerHandling
  private let thread: EventThread?
  private let count: Int

  init(_ core: EventCentral.Core, _ count: Int, prefersThread: Bool = false) {
    central = EventCentral(core: core)
    answerer = Query.answer(on: central) { query in query.number + 1 }
    thread = prefersThread ? EventThread(on: central) : nil
    self.count = count
  }

  func run() -> Double {
    wait(on: thread) { [central, count] in
      var samples: [Double] = []
      for number in 0..<UInt64(count) {
        evb_pause_for(gap, false)
        let start = evb_now()
        let answer = try? await central.request(Query(number: number), expecting: UInt64.self)
        samples.append(Double(evb_now() - start))
        check(answer == number + 1, "A request got the answer of another.")
      }
      return samples.median
    }
  }

  func end() {
    answerer.remove()
    thread?.cancel()
  }
}

/// A bare futex, there and back.
private final class TwoWakes: Trial {
  private var values: [UInt64]

  init(_ count: Int) { values = Array(repeating: 0, count: count) }

  func run() -> Double {
    values.withUnsafeMutableBufferPointer { evb_futex_wakes(UInt32($0.count), gap, false, $0.baseAddress) }
    return 2 * values.map { Double($0) }.median
  }

  func end() {}
}

/// Calls an actor again and again; with nil it runs on the default executor.
private final class Jobs: Trial {
  private actor Counter {
    private let thread: EventThread
    private var sum = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(on thread: EventThread) { self.thread = thread }
    func add(_ value: Int) -> Int {
      sum += value
      return sum
    }
  }
  private actor DefaultCounter {
    private var sum = 0
    func add(_ value: Int) -> Int {
      sum += value
      return sum
    }
  }

  private let count: Int
  private let thread: EventThread?

  init(_ count: Int, on thread: EventThread?) {
    self.count = count
    self.thread = thread
  }

  func run() -> Double {
    wait { [count, thread] in
      let counter = thread.map { Counter(on: $0) }
      let other = DefaultCounter()
      let start = evb_now()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks {
          group.addTask {
            if let counter {
              for _ in 0..<(count / tasks) { _ = await counter.add(1) }
            } else {
              for _ in 0..<(count / tasks) { _ = await other.add(1) }
            }
          }
        }
      }
      let end = evb_now()
      let sum = if let counter { await counter.add(0) } else { await other.add(0) }
      check(sum == count / tasks * tasks, "The actor ran \(sum) jobs of \(count).")
      return Double(end - start) / Double(sum)
    }
  }

  func end() { thread?.cancel() }
}

/// What an actor does on its executor.
private final class Calls: Trial {
  typealias Body = @Sendable (_ actor: any Counting, _ other: any Counting, _ count: Int) async -> Void

  private actor Counter: Counting {
    private let thread: EventThread
    var sum = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(on thread: EventThread) { self.thread = thread }
    func add(_ value: Int) { sum += value }
  }
  private actor DefaultCounter: Counting {
    var sum = 0
    func add(_ value: Int) { sum += value }
  }

  private let count: Int
  private let thread: EventThread?
  private let prefersThread: Bool
  private let body: Body

  init(_ count: Int, _ core: EventCentral.Core?, prefersThread: Bool = false, _ body: @escaping Body) {
    self.count = count / tasks * tasks
    thread = core.map { EventThread(on: EventCentral(core: $0)) }
    self.prefersThread = prefersThread
    self.body = body
  }

  func run() -> Double {
    wait(on: prefersThread ? thread : nil) { [count, thread, body] in
      func make() -> any Counting { thread.map { Counter(on: $0) } ?? DefaultCounter() }
      let (actor, other) = (make(), make())
      let start = evb_now()
      await body(actor, other, count)
      let end = evb_now()
      let sum = await actor.sum + other.sum
      check(sum == count, "The actors counted \(sum) of \(count).")
      return Double(end - start) / Double(count)
    }
  }

  func end() { thread?.cancel() }
}

private protocol Counting: Actor {
  var sum: Int { get }
  func add(_ value: Int)
}

extension Counting {
  func call(_ other: any Counting, _ count: Int) async {
    // Something of its own each time, or the compiler would leave the way back out.
    add(0)
    for _ in 0..<count {
      await other.add(1)
      add(0)
    }
  }

  func start(_ count: Int) async {
    for _ in 0..<(count / tasks) {
      let started = (0..<tasks).map { _ in Task { add(1) } }
      for task in started { await task.value }
    }
  }
}
