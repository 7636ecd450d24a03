// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore

// A message between two consumers that never sleep: half of a round trip.
//
//     event thread (spin) ──ping──► event thread (spin)
//                         ◄──pong──

/// The candidates of this shape.
func spinCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(_ subject: Subject, _ make: @escaping () -> any Trial) -> Candidate {
    Candidate(
      shape: .spinOneWay, subject: subject, payloadBytes: MemoryLayout<Event24>.size, make: make)
  }
  return [
    candidate(.lockFree) { PingPong(.lockFree, rounds: scale.rounds) },
    candidate(.locking) { PingPong(.locking, rounds: scale.rounds) },
    candidate(.rawC) { RawPingPong(rounds: scale.rounds, evb_raw_ping_pong) },
    candidate(.cacheLine) { RawPingPong(rounds: scale.rounds, evb_cache_line_ping_pong) },
  ]
}

private struct Ping: Eventable {
  let number: Int
  let x = 1.0
  let y = 2.0
}

private struct Pong: Eventable {
  let number: Int
  let x = 1.0
  let y = 2.0
}

/// Two event threads of a central; they live for one run, since they keep two processors busy.
private final class PingPong: Trial {
  private let core: EventCentral.Core
  private let rounds: Int

  init(_ core: EventCentral.Core, rounds: Int) {
    self.core = core
    self.rounds = rounds
  }

  func run() -> Double {
    let central = EventCentral(core: core)
    let receiver = EventThread(on: central, waitStrategy: .spin, name: "ping")
    let sender = EventThread(on: central, waitStrategy: .spin, name: "pong")
    receiver.addEventCallback({ (ping: Ping) in Pong(number: ping.number).queue(on: central) })
    let finish = Finish()
    let count = Count()
    let rounds = rounds
    sender.addEventCallback({ (pong: Pong) in
      count.value += 1
      if pong.number < rounds {
        Ping(number: pong.number + 1).queue(on: central)
      } else {
        finish.arrive()
      }
    })
    finish.expect(1)
    let start = evb_now()
    Ping(number: 1).queue(on: central)
    let end = finish.wait()
    for thread in [receiver, sender] {
      thread.cancel()
      thread.join()
    }
    check(count.value == rounds, "\(count.value) pongs of \(rounds) came.")
    return Double(end - start) / Double(2 * rounds)
  }

  func end() {}
}

private final class Count: @unchecked Sendable {
  // Written by the consumer, read by the main thread after the join.
  var value = 0
}

/// The same in C, or the bare cache line.
final class RawPingPong: Trial {
  private let rounds: Int
  private let measure: (UInt64) -> UInt64

  init(rounds: Int, _ measure: @escaping (UInt64) -> UInt64) {
    self.rounds = rounds
    self.measure = measure
  }

  func run() -> Double {
    Double(measure(UInt64(rounds))) / Double(2 * rounds)
  }

  func end() {}
}
