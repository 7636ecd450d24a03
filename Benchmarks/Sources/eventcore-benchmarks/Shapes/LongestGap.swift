// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import RawCore

// How long an event can wait although its post has returned. Sixteen producers post now and then, so that
// the system often suspends one of them in the middle of a post. The figure is the longest time of a run
// from the return of a post to the beginning of the event's handler.
//
//     producer × 16: pause, post, note the time ──► consumer: note the time

private let producers = 16
private let pause: UInt64 = 200_000

/// The cores and the hand-written mailbox, whose lock a producer may hold when it is suspended.
func gapCandidates(_ scale: Scale) -> [Candidate] {
  func channel<C: Channel>(
    _ subject: Subject, _ make: @escaping ([[C.Handler]]) -> C
  ) -> Candidate where C.Event == Event24 {
    Candidate(
      shape: .sixteenGap, subject: subject, payloadBytes: MemoryLayout<Event24>.size
    ) { LongestGap(posts: scale.wakes, make) }
  }
  return [
    channel(.lockFree) { EventCoreChannel(.lockFree, $0) },
    channel(.locking) { EventCoreChannel(.locking, $0) },
    channel(.mutexSwap) { MutexSwapChannel($0) },
  ]
}

private final class Times: @unchecked Sendable {
  // `returned` is written by the producers, each its own part, `begun` by the consumer; the main
  // thread reads both when all have ended, which `Finish` and a semaphore tell it.
  let returned: UnsafeMutableBufferPointer<UInt64>
  let begun: UnsafeMutableBufferPointer<UInt64>

  init(_ count: Int) {
    returned = .allocate(capacity: count)
    begun = .allocate(capacity: count)
  }

  deinit {
    returned.deallocate()
    begun.deallocate()
  }

  /// Nanoseconds; 0 if each handler began before its post returned.
  var longest: Double {
    zip(begun, returned).map { $0 > $1 ? Double($0 - $1) : 0 }.max() ?? 0
  }
}

private final class LongestGap<C: Channel>: Trial where C.Event == Event24 {
  private let channel: C
  private let tally: Tally
  private let finish: Finish
  private let posts: Int
  private let times: Times

  init(posts: Int, _ make: ([[C.Handler]]) -> C) {
    let finish = Finish()
    let tally = Tally(finish)
    let times = Times(producers * posts)
    (self.posts, self.finish, self.tally, self.times) = (posts, finish, tally, times)
    channel = make([
      [
        EventClosure { event in
          times.begun[Int(event.weight)] = evb_now()
          tally.receive(event.weight)
        }
      ]
    ])
  }

  func run() -> Double {
    let count = producers * posts
    finish.expect(1)
    tally.expect(count)
    let ended = DispatchSemaphore(value: 0)
    for producer in 0..<producers {
      startThread { [channel, times, posts] in
        for index in producer * posts..<(producer + 1) * posts {
          evb_pause_for(pause, false)
          channel.send(Event24(number: UInt64(index)))
          times.returned[index] = evb_now()
        }
        ended.signal()
      }
    }
    _ = finish.wait()
    for _ in 0..<producers { ended.wait() }
    tally.verify(UInt64(count * (count - 1) / 2), Shape.sixteenGap.rawValue)
    return times.longest
  }

  func end() {
    channel.end()
  }
}
