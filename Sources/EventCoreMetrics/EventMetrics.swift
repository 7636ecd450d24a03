// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Metrics
  public import EventCore
  public import Metrics
  import Synchronization
  #if ServiceLifecycle
    public import ServiceLifecycle
  #endif

  /// Gives the counts of receivers to swift-metrics.
  ///
  /// ```swift
  /// let metrics = EventMetrics(of: workers, sensors, world, every: .seconds(10))
  /// try await metrics.run()      // a loop, until the task is cancelled; or a service of a ServiceGroup
  /// ```
  ///
  /// Each receiver has these metrics, with the dimension `receiver`, its name; of several with one name the second is
  /// `Name-2`, and so on.
  ///
  /// | Label | Kind | What it is |
  /// |---|---|---|
  /// | `eventcore.accepted` | counter | events that came to its mailboxes |
  /// | `eventcore.delivered` | counter | events for which a handler was called |
  /// | `eventcore.skipped` | counter | events that no handler wanted |
  /// | `eventcore.refused`, `eventcore.dropped` | counters | events for which a bounded mailbox had no room |
  /// | `eventcore.cancelled` | counter | events that were freed at its end |
  /// | `eventcore.waiting` | gauge | events that wait |
  /// | `eventcore.high_water_mark` | gauge | the most that have waited in a bounded mailbox |
  /// | `eventcore.handler_running` | timer | how long the handler has been running that began first; of pools |
  ///
  /// **Threads**: any, for every member.
  public final class EventMetrics: Sendable {
    private let instruments: [Instruments]
    private let interval: Duration
    private let last: Mutex<[Counts]>

    /// Makes the metrics. The counters begin with what the receivers have counted so far.
    ///
    /// - Parameters:
    ///   - receivers: What to look at. They are kept alive.
    ///   - interval: How often ``run()`` looks.
    ///   - factory: Where the metrics are made.
    public init(
      of receivers: any EventReceiver..., every interval: Duration = .seconds(10),
      factory: any MetricsFactory = MetricsSystem.factory
    ) {
      self.interval = interval
      var seen: [String: Int] = [:]
      instruments = receivers.map { receiver in
        let name = receiver.receiverName
        seen[name, default: 0] += 1
        let number = seen[name, default: 1]
        return Instruments(receiver, name: number == 1 ? name : "\(name)-\(number)", factory)
      }
      last = Mutex(receivers.map { _ in Counts() })
    }

    /// Looks at all receivers once, and records what they say.
    ///
    /// **Complexity**: O(receivers, and threads of pools).
    public func sample() {
      // One at a time, so that what one call has seen is not counted by another as well.
      last.withLock { last in
        for (index, instrument) in instruments.enumerated() { instrument.sample(&last[index]) }
      }
    }

    /// Samples again and again, until its task is cancelled; as a service, until the graceful shutdown, after which it
    /// samples once more.
    public func run() async throws {
      #if ServiceLifecycle
        await cancelWhenGracefulShutdown { await self.sampleUntilCancelled() }
      #else
        await sampleUntilCancelled()
      #endif
    }

    private func sampleUntilCancelled() async {
      while !Task.isCancelled {
        sample()
        try? await Task.sleep(for: interval)
      }
      sample()
    }
  }

  /// What a receiver had counted at the last look.
  struct Counts {
    var accepted: UInt64 = 0
    var delivered: UInt64 = 0
    var skipped: UInt64 = 0
    var refused: UInt64 = 0
    var dropped: UInt64 = 0
    var cancelled: UInt64 = 0
  }

  /// The metrics of one receiver.
  private struct Instruments: Sendable {
    let receiver: any EventReceiver
    let accepted, delivered, skipped, refused, dropped, cancelled: Counter
    let waiting, highWaterMark: Gauge
    let running: Timer

    init(_ receiver: any EventReceiver, name: String, _ factory: any MetricsFactory) {
      func counter(_ label: String) -> Counter {
        Counter(label: "eventcore.\(label)", dimensions: [("receiver", name)], factory: factory)
      }
      self.receiver = receiver
      (accepted, delivered, skipped) = (counter("accepted"), counter("delivered"), counter("skipped"))
      (refused, dropped, cancelled) = (counter("refused"), counter("dropped"), counter("cancelled"))
      waiting = Gauge(label: "eventcore.waiting", dimensions: [("receiver", name)], factory: factory)
      highWaterMark = Gauge(label: "eventcore.high_water_mark", dimensions: [("receiver", name)], factory: factory)
      running = Timer(label: "eventcore.handler_running", dimensions: [("receiver", name)], factory: factory)
    }

    func sample(_ last: inout Counts) {
      let (handlers, mailbox) = (receiver.receiverStatistics, receiver.mailboxStatistics)
      count(accepted, mailbox.accepted, &last.accepted)
      count(delivered, handlers.delivered, &last.delivered)
      count(skipped, handlers.skipped, &last.skipped)
      count(refused, mailbox.refused, &last.refused)
      count(dropped, mailbox.dropped, &last.dropped)
      count(cancelled, handlers.cancelled, &last.cancelled)
      waiting.record(receiver.waitingEventCount)
      highWaterMark.record(mailbox.highWaterMark)
      if let running = receiver.handlerRunningFor {
        self.running.recordNanoseconds(Int64(clamping: running.components.seconds) &* 1_000_000_000
          + running.components.attoseconds / 1_000_000_000)
      }
    }

    private func count(_ counter: Counter, _ now: UInt64, _ last: inout UInt64) {
      // A reading whose parts are some events apart may be a little behind the last one, as may that of a pool whose
      // thread has just ended.
      guard now > last else { return }
      counter.increment(by: Int64(clamping: now - last))
      last = now
    }
  }

  #if ServiceLifecycle
    extension EventMetrics: Service {}
  #endif
#endif
