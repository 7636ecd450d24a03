// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Metrics
  import EventCore
  import Metrics

  /// What a receiver says at one look, or all of a name together.
  struct MetricsReading {
    let name: String
    /// In the order of `labels`.
    let counts: [UInt64]
    let waiting: Int
    let highWaterMark: Int
    var runningFor: Duration?
    var types: [EventStatistics.Handled] = []
    /// Whether there is no such receiver any more.
    var hasEnded = false

    static let labels = ["accepted", "delivered", "skipped", "refused", "dropped", "cancelled"]

    init(_ name: String, _ receiver: any EventReceiver) {
      let mailbox = receiver.mailboxStatistics
      self.init(name, receiver.receiverStatistics, mailbox, waiting: receiver.waitingEventCount)
      runningFor = receiver.handlerRunningFor
    }

    init(_ receiver: EventStatistics.Receiver) {
      self.init(receiver.name, receiver.counts, receiver.mailbox, waiting: receiver.mailbox.waiting)
      types = receiver.types
      hasEnded = receiver.hasEnded
    }

    private init(
      _ name: String, _ handlers: EventThreadStatistics, _ mailbox: EventMailboxStatistics, waiting: Int
    ) {
      self.name = name
      counts = [
        mailbox.accepted, handlers.delivered, handlers.skipped, mailbox.refused, mailbox.dropped, handlers.cancelled,
      ]
      self.waiting = waiting
      highWaterMark = mailbox.highWaterMark
    }
  }

  /// The metrics of the receivers of one name, and what was recorded there so far, which stays when they have ended.
  struct ReceiverMetrics {
    /// A timer; those of a type of events have its name.
    private struct TimerKey: Hashable {
      let label: String
      var event: String?
    }

    private struct Metrics {
      let counters: [Counter]
      let waiting, highWaterMark: Gauge
      var timers: [TimerKey: Timer] = [:]
    }

    /// Nil unless there are such receivers.
    private var metrics: Metrics?
    private var counts = MetricsReading.labels.map { _ in 0 as UInt64 }
    private var times: [TimerKey: EventHistogram] = [:]

    init() {}

    init(_ name: String, _ dimensions: [(String, String)], _ factory: any MetricsFactory) {
      metrics = Self.make(name, dimensions, factory)
    }

    private static func make(
      _ name: String, _ dimensions: [(String, String)], _ factory: any MetricsFactory
    ) -> Metrics {
      let receiver = dimensions + [("receiver", name)]
      return Metrics(
        counters: MetricsReading.labels.map { Counter(label: "eventcore.\($0)", dimensions: receiver, factory: factory) },
        waiting: Gauge(label: "eventcore.waiting", dimensions: receiver, factory: factory),
        highWaterMark: Gauge(label: "eventcore.high_water_mark", dimensions: receiver, factory: factory))
    }

    mutating func record(
      _ reading: MetricsReading, _ dimensions: [(String, String)], _ factory: any MetricsFactory
    ) {
      // What has ended keeps its metrics for one look more, for backends that are asked from time to time.
      guard !reading.hasEnded || hasNews(reading) else {
        // Some backends keep the last value of a gauge that was destroyed.
        metrics?.waiting.record(reading.waiting)
        return destroy()
      }
      let current = metrics ?? Self.make(reading.name, dimensions, factory)
      metrics = current
      for (index, count) in reading.counts.enumerated() where count > counts[index] {
        // A reading whose parts are some events apart may be a little behind the last one, as may that of a pool whose
        // thread has just ended: such a count waits.
        current.counters[index].increment(by: Int64(clamping: count - counts[index]))
        counts[index] = count
      }
      current.waiting.record(reading.waiting)
      current.highWaterMark.record(reading.highWaterMark)
      if let running = reading.runningFor {
        let nanoseconds = Int64(clamping: running.components.seconds) &* 1_000_000_000
          + running.components.attoseconds / 1_000_000_000
        timer(TimerKey(label: "handler_running"), reading.name, dimensions, factory).recordNanoseconds(nanoseconds)
      }
      for (key, histogram) in Self.times(of: reading) {
        let growth = growth(of: histogram, key)
        guard growth.count > 0 else { continue }
        // Each bucket keeps its highest count, as the counters do.
        times[key, default: EventHistogram()] = times[key, default: EventHistogram()] + growth
        let timer = timer(key, reading.name, dimensions, factory)
        growth.forEach { nanoseconds, count in
          for _ in 0..<count { timer.recordNanoseconds(Int64(clamping: nanoseconds)) }
        }
      }
    }

    private static func times(of reading: MetricsReading) -> [(TimerKey, EventHistogram)] {
      reading.types.flatMap { handled in
        [
          (TimerKey(label: "waiting_time", event: handled.type), handled.waitingTime),
          (TimerKey(label: "handling_time", event: handled.type), handled.handlingTime),
        ]
      }
    }

    /// The times that were not recorded yet.
    private func growth(of histogram: EventHistogram, _ key: TimerKey) -> EventHistogram {
      histogram.growth(since: times[key] ?? EventHistogram())
    }

    private func hasNews(_ reading: MetricsReading) -> Bool {
      zip(reading.counts, counts).contains(where: >)
        || Self.times(of: reading).contains { key, histogram in growth(of: histogram, key).count > 0 }
    }

    private mutating func timer(
      _ key: TimerKey, _ name: String, _ dimensions: [(String, String)], _ factory: any MetricsFactory
    ) -> Timer {
      if let timer = metrics?.timers[key] { return timer }
      let dimensions = dimensions + [("receiver", name)] + (key.event.map { [("event", $0)] } ?? [])
      let timer = Timer(label: "eventcore.\(key.label)", dimensions: dimensions, factory: factory)
      metrics?.timers[key] = timer
      return timer
    }

    mutating func destroy() {
      guard let metrics else { return }
      self.metrics = nil
      for counter in metrics.counters { counter.destroy() }
      for gauge in [metrics.waiting, metrics.highWaterMark] { gauge.destroy() }
      for timer in metrics.timers.values { timer.destroy() }
    }
  }
#endif
