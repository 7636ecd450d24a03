// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import RawCore

// How long an idle consumer takes to begin with an event. The producer pauses 200 µs before each event,
// so that the consumer has long been asleep. It sleeps itself, so that a processor has to come up as well,
// or it keeps its processor busy.
//
//     producer: pause, note the time, send ──► consumer sleeps ... wakes: note the time

private let gap: UInt64 = 200_000

/// The candidates of both shapes.
func idleWakeCandidates(_ scale: Scale) -> [Candidate] {
  [Shape.idleWake, .idleWakeSpinningProducer].flatMap { shape in
    let spinning = shape == .idleWakeSpinningProducer
    func candidate(_ subject: Subject, _ make: @escaping () -> any Trial) -> Candidate {
      Candidate(
        shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size, make: make)
    }
    func channel<C: Channel>(
      _ subject: Subject, _ make: @escaping ([[C.Handler]]) -> C
    ) -> Candidate where C.Event == Event24 {
      candidate(subject) { IdleWake(scale.wakes, spinning: spinning, make) }
    }
    func raw(
      _ subject: Subject,
      _ measure: @escaping (UInt32, UInt64, Bool, UnsafeMutablePointer<UInt64>?) -> Void
    ) -> Candidate {
      candidate(subject) {
        RawWake(scale.wakes) { measure(UInt32(scale.wakes), gap, spinning, $0) }
      }
    }
    let all = [
      channel(.lockFree) { EventCoreChannel(.lockFree, $0) },
      channel(.locking) { EventCoreChannel(.locking, $0) },
      raw(.rawC, evb_raw_wakes),
      channel(.mutexSwap) { MutexSwapChannel($0) },
      channel(.dispatchQueue) { DispatchQueueChannel($0) },
      channel(.asyncStream) { AsyncStreamChannel($0) },
      channel(.actor) { ActorChannel($0) },
      channel(.nio) { NIOChannel($0) },
    ]
    return evb_has_futex() ? all + [raw(.futex, evb_futex_wakes)] : all
  }
}

/// Wakes the consumer of a channel; the event carries the time of its dispatch.
private final class IdleWake<C: Channel>: Trial where C.Event == Event24 {
  private let channel: C
  private let samples: Samples
  private let spinning: Bool

  init(_ wakes: Int, spinning: Bool, _ make: ([[C.Handler]]) -> C) {
    let samples = Samples(wakes)
    self.samples = samples
    self.spinning = spinning
    channel = make([[EventClosure { event in samples.append(evb_now() - event.weight) }]])
  }

  func run() -> Double {
    samples.begin()
    for _ in 0..<samples.target {
      evb_pause_for(gap, spinning)
      channel.send(Event24(number: evb_now()))
    }
    return samples.waitForMedian()
  }

  func end() {
    channel.end()
  }
}

/// The same in C.
private final class RawWake: Trial {
  private var values: [UInt64]
  private let measure: (UnsafeMutablePointer<UInt64>?) -> Void

  init(_ wakes: Int, _ measure: @escaping (UnsafeMutablePointer<UInt64>?) -> Void) {
    values = Array(repeating: 0, count: wakes)
    self.measure = measure
  }

  func run() -> Double {
    values.withUnsafeMutableBufferPointer { measure($0.baseAddress) }
    return values.map { Double($0) }.median
  }

  func end() {}
}

/// What the handler measured.
private final class Samples: @unchecked Sendable {
  // Written by the consumer during a run, by the main thread between two; `Finish` orders them.
  private var values: [UInt64] = []
  private let finish = Finish()
  let target: Int

  init(_ target: Int) {
    self.target = target
    values.reserveCapacity(target)
  }

  func begin() {
    values.removeAll(keepingCapacity: true)
    finish.expect(1)
  }

  func append(_ value: UInt64) {
    values.append(value)
    if values.count == target {
      finish.arrive()
    }
  }

  func waitForMedian() -> Double {
    _ = finish.wait()
    check(values.count == target, "\(values.count) wake-ups of \(target) were noted.")
    return values.map { Double($0) }.median
  }
}
