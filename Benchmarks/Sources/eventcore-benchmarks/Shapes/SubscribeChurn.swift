// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore

// Listeners that come and go, on a listener thread that has 10 or 10,000 of them and through which
// a stream of a million events a second passes meanwhile.
//
//     producer: every microsecond an event of the stream ──► listener thread: note how long it took
//               every 50 µs subscribe and unsubscribe ─────►                  10,000 other listeners
//
// Both are done by one thread, since a machine of two processors has none for a third: an event
// that falls due during a subscription is dispatched after it, and timed from its dispatch. The
// quiet subject does the same without subscribing.

private struct Rare: Eventable {
  let number = 0
}

/// The candidates of the four shapes: what a subscription costs, and what the stream notices of it.
func churnCandidates(_ scale: Scale) -> [Candidate] {
  let events = scale.isQuick ? 100_000 : 200_000
  func candidate(
    _ shape: Shape, _ subject: Subject, _ core: EventCentral.Core, _ subscriptions: Int,
    subscribes: Bool = true, figure: @escaping (Churn) -> Double
  ) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
      ChurnTrial(
        Churn(core, subscriptions: subscriptions, events: events, subscribes: subscribes), figure)
    }
  }
  return [
    (10, Shape.subscribeChurn10, Shape.subscribeChurn10Stream),
    (10_000, .subscribeChurn10000, .subscribeChurn10000Stream),
  ].flatMap { count, cost, stream in
    [
      candidate(cost, .lockFree, .lockFree, count) { $0.cost },
      candidate(cost, .locking, .locking, count) { $0.cost },
      candidate(stream, .lockFree, .lockFree, count) { $0.p99 },
      candidate(stream, .quiet, .lockFree, count, subscribes: false) { $0.p99 },
    ]
  }
}

private final class ChurnTrial: Trial {
  private let churn: Churn
  private let figure: (Churn) -> Double

  init(_ churn: Churn, _ figure: @escaping (Churn) -> Double) {
    self.churn = churn
    self.figure = figure
  }

  /// The median of five stretches of a tenth of a second (or a fifth). A p99 is eight milliseconds in a
  /// stretch in which the host takes a processor away, and a microsecond in the others.
  func run() -> Double {
    let figures = (0..<5).map { _ in
      churn.run()
      return figure(churn)
    }
    return figures.sorted()[figures.count / 2]
  }

  func end() {
    churn.end()
  }
}

private final class Churn {
  private static let interval: UInt64 = 1_000
  private static let eventsPerSubscription = 50

  /// Nanoseconds for one subscription or its end, on average, in the last run.
  private(set) var cost = 0.0
  /// How long 99 of 100 events of the last run took at most, from the dispatch to the handler.
  private(set) var p99 = 0.0

  private let central: EventCentral
  private let requester = Requester()
  private let delays: Delays
  private let events: Int
  private let subscribes: Bool

  private final class Requester: Sendable {}

  init(_ core: EventCentral.Core, subscriptions: Int, events: Int, subscribes: Bool) {
    let delays = Delays(events)
    self.delays = delays
    self.events = events
    self.subscribes = subscribes
    central = EventCentral(core: core)
    Event24.addListener(
      requester, { (event: Event24) in delays.append(event) }, executeOn: .listenerThread,
      on: central)
    for _ in 0..<subscriptions {
      Rare.addListener(requester, { (_: Rare) in }, executeOn: .listenerThread, on: central)
    }
  }

  func run() {
    delays.begin()
    var spent: UInt64 = 0
    var pairs = 0
    let start = evb_now()
    for number in 0..<events {
      let due = start + UInt64(number) * Self.interval
      var now = evb_now()
      while now < due {
        now = evb_now()
      }
      Event24(number: now).queue(on: central)
      if subscribes, number % Self.eventsPerSubscription == 0 {
        let begin = evb_now()
        let handle = Rare.addListener(
          requester, { (_: Rare) in }, executeOn: .listenerThread, on: central)
        handle.remove()
        spent += evb_now() - begin
        pairs += 1
      }
    }
    p99 = delays.wait()
    cost = pairs == 0 ? 0 : Double(spent) / Double(pairs) / 2
  }

  func end() {
    central.listener.end()
  }
}

/// How long each event took.
private final class Delays: @unchecked Sendable {
  // Written by the listener thread during a run, by the main thread between two; `Finish` orders
  // them.
  private var values: [UInt64] = []
  private let finish = Finish()
  private let target: Int

  init(_ target: Int) {
    self.target = target
    values.reserveCapacity(target)
  }

  func begin() {
    values.removeAll(keepingCapacity: true)
    finish.expect(1)
  }

  func append(_ event: Event24) {
    values.append(evb_now() - event.weight)
    if values.count == target {
      finish.arrive()
    }
  }

  /// Waits for all events, and returns what 99 of 100 took at most.
  func wait() -> Double {
    _ = finish.wait()
    check(values.count == target, "\(values.count) events of \(target) were timed.")
    return Double(values.sorted()[target * 99 / 100])
  }
}
