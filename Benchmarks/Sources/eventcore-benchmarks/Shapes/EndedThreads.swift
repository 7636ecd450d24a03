// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import Foundation
import RawCore
import Synchronization

// What 10,000 threads that have posted once, and have ended, leave to those who come after them: the time in which a
// pump handles what three other threads have posted in turn, so that two neighbours never come from one thread.
//
//     ended × 10,000: post ──┐
//     producer × 3: post, pass the turn on ──► pump: handle all that waits
//                                              └── this part alone is measured ──┘

private let endedThreads = 10_000
/// Alive at one time.
private let wave = 500
private let producers = 3

/// Each core after the threads have ended, and the lock-free one where there were none (`quiet`).
func endedThreadCandidates(_ scale: Scale) -> [Candidate] {
  [
    (.lockFree, .lockFree, endedThreads), (.quiet, .lockFree, 0), (.locking, .locking, endedThreads),
  ].map { (subject: Subject, core: EventCentral.Core, ended: Int) in
    Candidate(shape: .endedThreads, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
      EndedThreads(core, ended: ended, events: scale.events(.lockFree) / 64)
    }
  }
}

private final class EndedThreads: Trial {
  private final class Sum {
    var count = 0
    var weight: UInt64 = 0
  }

  private let central: EventCentral
  private let pump: EventPump
  private let sum = Sum()
  /// Of each producer in one run.
  private let events: Int

  init(_ core: EventCentral.Core, ended: Int, events: Int) {
    central = EventCentral(core: core)
    pump = EventPump(on: central)
    self.events = events
    pump.addEventCallback { [sum] (event: Event24) in
      sum.count += 1
      sum.weight &+= event.weight
    }
    for _ in 0..<ended / wave {
      threads(wave) { [central] _ in Event24(number: 1).queue(on: central) }
    }
    let handled = pump.run().handled
    check(handled == ended, "A pump has handled \(handled) events of \(ended) threads.")
  }

  func run() -> Double {
    (sum.count, sum.weight) = (0, 0)
    let turn = Turn()
    threads(producers) { [central, events] index in
      for event in 0..<events {
        let number = event * producers + index
        turn.wait(for: number)
        Event24(number: UInt64(number)).queue(on: central)
        turn.pass(after: number)
      }
    }
    let start = evb_now()
    pump.run()
    let end = evb_now()
    let count = events * producers
    check(
      sum.count == count && sum.weight == UInt64(count * (count - 1) / 2),
      "A pump has handled \(sum.count) of \(count) events.")
    return Double(end - start) / Double(count)
  }

  func end() { pump.cancel() }

  /// Runs `body` on so many threads at once, and returns when all have ended it.
  private func threads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let ended = DispatchSemaphore(value: 0)
    let all = DispatchSemaphore(value: 0)
    for index in 0..<count {
      let thread = Thread {
        body(index)
        ended.signal()
        // None ends before the last has posted, so that no thread takes the place of another.
        all.wait()
      }
      thread.stackSize = 128 << 10
      thread.start()
    }
    for _ in 0..<count { ended.wait() }
    for _ in 0..<count { all.signal() }
  }
}

/// Whose turn it is.
private final class Turn: Sendable {
  private let next = Atomic(0)

  /// Acquires what `pass` releases: the posts of the others come before the caller's.
  func wait(for number: Int) {
    while next.load(ordering: .acquiring) != number { sched_yield() }
  }

  func pass(after number: Int) { next.store(number + 1, ordering: .releasing) }
}
