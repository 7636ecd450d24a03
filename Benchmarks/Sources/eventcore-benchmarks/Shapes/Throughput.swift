// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import AllocationCounter
import Dispatch
import RawCore

/// How many events are sent, and by and to how many.
struct Load {
  var events: Int
  var producers = 1
  var consumers = 1
  var handlers = 1
}

/// Sends a load through a channel: from the first event until the last handler has its last.
///
///     producer × p ──► channel ──► consumer × c ──► handler × h: count and add up
///
/// One producer is the main thread; several are threads that begin together. Right before, an
/// eighth of the events is sent unmeasured, since another subject has run meanwhile.
final class Throughput<C: Channel>: Trial {
  private let name: String
  private let load: Load
  private let channel: C
  private let tallies: [Tally]
  private let finish: Finish
  private let counting: Bool
  private let produce: @Sendable (C, Int, C.Event.Supply) -> Void

  init(
    _ name: String, _ load: Load, counting: Bool = false, _ make: ([[C.Handler]]) -> C,
    produce: @escaping @Sendable (C, Int, C.Event.Supply) -> Void = { $0.produce($1, $2) }
  ) {
    let finish = Finish()
    let tallies = (0..<load.consumers * load.handlers).map { _ in Tally(finish) }
    self.name = name
    self.load = load
    self.finish = finish
    self.tallies = tallies
    self.counting = counting
    self.produce = produce
    channel = make(
      (0..<load.consumers).map { consumer in
        (0..<load.handlers).map { handler in
          let tally = tallies[consumer * load.handlers + handler]
          return EventClosure { event in tally.receive(event.weight) }
        }
      })
  }

  func run() -> Double {
    // Allocations are counted once all of these events have waited at once: more never do.
    _ = send(counting ? load.events : load.events / 8, counting: false, holding: counting && !C.staysOnSender)
    let nanoseconds = send(load.events, counting: counting)
    if counting {
      return Double(evb_allocations_disarm().blocks) / Double(load.events)
    }
    return nanoseconds / Double(load.events * tallies.count)
  }

  func end() {
    channel.end()
  }

  private func send(_ events: Int, counting: Bool, holding: Bool = false) -> Double {
    // Whole batches of 64 for each producer.
    let each = events / load.producers / 64 * 64
    let sum = (1...UInt64(each)).reduce(into: UInt64(0)) { $0 &+= C.Event.weight(of: $1) }
    let gate = holding ? DispatchSemaphore(value: 0) : nil
    finish.expect(tallies.count)
    for tally in tallies {
      tally.expect(each * load.producers, holding: gate)
    }
    let supplies = (0..<load.producers).map { _ in C.Event.supply(each) }
    let nanoseconds: Double
    if load.producers == 1 {
      let window = Window(counting: counting)
      produce(channel, each, supplies[0])
      for _ in tallies { gate?.signal() }
      nanoseconds = window.nanoseconds(until: finish.wait())
    } else {
      check(gate == nil, "\(name): several producers wait for the handlers, so that nobody would open their gate.")
      nanoseconds = sendTogether(each, supplies, counting)
    }
    for tally in tallies {
      tally.verify(sum &* UInt64(load.producers), name)
    }
    return nanoseconds
  }

  private func sendTogether(_ each: Int, _ supplies: [C.Event.Supply], _ counting: Bool) -> Double {
    let ready = DispatchSemaphore(value: 0)
    let start = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    for supply in supplies {
      startThread { [channel, produce] in
        ready.signal()
        start.wait()
        produce(channel, each, supply)
        ended.signal()
      }
    }
    for _ in supplies { ready.wait() }
    let window = Window(counting: counting)
    for _ in supplies { start.signal() }
    let end = finish.wait()
    for _ in supplies { ended.wait() }
    return window.nanoseconds(until: end)
  }
}
