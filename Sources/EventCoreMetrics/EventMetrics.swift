// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Metrics
  public import EventCore
  public import Metrics
  import Synchronization
  #if ServiceLifecycle
    public import ServiceLifecycle
  #endif

  /// Gives the counts of receivers, and how long their events wait and take, to swift-metrics.
  ///
  /// ```swift
  /// let metrics = EventMetrics(observing: world, every: .seconds(10))
  /// try await metrics.run()      // a loop, until the task is cancelled; or a service of a ServiceGroup
  /// ```
  ///
  /// Each receiver has these metrics, with the dimension `receiver`, its name; the last two have the dimension `event` as
  /// well, the type with its module.
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
  /// | `eventcore.waiting_time` | timer | from the dispatch to the handler; of an observed central |
  /// | `eventcore.handling_time` | timer | from the first handler's beginning to the last one's end; likewise |
  ///
  /// **Rule.** Of one factory, let one object have the metrics of a name: make another with `dimensions` of its own, or
  /// after the first has gone. **Reason.** A metric is its label and its dimensions. Two objects would set the same gauges,
  /// and the one that goes destroys the metrics of both.
  ///
  /// **Threads**: any, for every member. **Ownership**: its metrics are destroyed with it. One that follows it begins with
  /// what the receivers have counted from their beginning.
  public final class EventMetrics: Sendable {
    private let interval: Duration
    private let factory: any MetricsFactory
    private let dimensions: [(String, String)]
    /// What there is to say now.
    private let read: @Sendable () -> [MetricsReading]
    /// What was said so far, by the receivers' names.
    private let receivers = Mutex<[String: ReceiverMetrics]>([:])

    /// Makes metrics of all receivers of a central, also of those that come later: event threads, the threads of pools,
    /// pumps, the places of listeners, and sequences. Those of one name are added up. When all of that name have ended
    /// and their last counts were recorded, their metrics are destroyed at the next look.
    ///
    /// The two timers get each event that was timed once, with its time to 3 %: they are samples, whose number says
    /// nothing about the number of events. The counters begin with what the receivers have counted so far. The central
    /// is observed as long as this object lives (`EventCentral.observe(times:)`), and kept alive. What several objects
    /// look at is counted by each of them.
    ///
    /// - Parameters:
    ///   - central: Whose receivers.
    ///   - times: Which events are timed.
    ///   - interval: After how long ``run()`` looks again, more than nothing.
    ///   - dimensions: What all of these metrics have before their own dimensions: `[("central", "north")]`.
    ///   - factory: Where the metrics are made.
    ///
    /// **Complexity**: the observation costs each event some two nanoseconds, and some 60 if it is timed.
    public convenience init(
      observing central: EventCentral, times: EventSampling = .every(64), every interval: Duration = .seconds(10),
      dimensions: [(String, String)] = [], factory: any MetricsFactory = MetricsSystem.factory
    ) {
      let observation = central.observe(times: times)
      self.init(every: interval, dimensions, factory) {
        withExtendedLifetime(observation) { central.statisticsByName.receivers.map(MetricsReading.init) }
      }
    }

    /// Makes metrics of some receivers, which costs their events nothing. The counters begin with what the receivers have
    /// counted so far.
    ///
    /// - Parameters:
    ///   - receivers: What to look at. They are kept alive. Of several with one name the second is `Name-2`, and so on.
    ///     For listeners `on:` a thread or a pool that run elsewhere name its `listener`, too.
    ///   - interval: After how long ``run()`` looks again, more than nothing.
    ///   - dimensions: What all of these metrics have before their own dimensions.
    ///   - factory: Where the metrics are made.
    public convenience init(
      of receivers: any EventReceiver..., every interval: Duration = .seconds(10),
      dimensions: [(String, String)] = [], factory: any MetricsFactory = MetricsSystem.factory
    ) {
      self.init(of: receivers, every: interval, dimensions: dimensions, factory: factory)
    }

    /// The same for an array of receivers.
    public convenience init(
      of receivers: [any EventReceiver], every interval: Duration = .seconds(10),
      dimensions: [(String, String)] = [], factory: any MetricsFactory = MetricsSystem.factory
    ) {
      let names = receivers.distinctNames
      self.init(every: interval, dimensions, factory) { zip(names, receivers).map(MetricsReading.init) }
    }

    private init(
      every interval: Duration, _ dimensions: [(String, String)], _ factory: any MetricsFactory,
      _ read: @escaping @Sendable () -> [MetricsReading]
    ) {
      require(
        interval > .zero,
        """
        EventMetrics look again after a time that is greater than 0, and this one after \(interval): pass a positive \
        duration.
        """)
      self.interval = interval
      self.factory = factory
      self.dimensions = dimensions
      self.read = read
      // They are there from the beginning.
      receivers.withLock { receivers in
        for reading in read() where !reading.hasEnded {
          receivers[reading.name] = ReceiverMetrics(reading.name, dimensions, factory)
        }
      }
    }

    deinit {
      // A gauge that nobody sets any more would keep its last value.
      receivers.withLock { receivers in
        for name in receivers.keys { receivers[name]?.destroy() }
      }
    }

    /// Looks at all receivers once, and records what they say.
    ///
    /// **Complexity**: O(receivers and their types, threads of pools, and events that were timed since the last look).
    public func sample() {
      // One at a time, so that what one call has seen is not counted by another as well.
      receivers.withLock { receivers in
        for reading in read() {
          receivers[reading.name, default: ReceiverMetrics()].record(reading, dimensions, factory)
        }
      }
    }

    /// Samples again and again, until its task is cancelled; as a service, until the graceful shutdown, after which it
    /// samples once more. Name it before the services whose receivers it looks at, since a group shuts the last one down
    /// first.
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
        // The runtime traps at some hundred years.
        try? await Task.sleep(for: min(interval, .seconds(Int64(1) << 31)))
      }
      sample()
    }
  }

  #if ServiceLifecycle
    extension EventMetrics: Service {}
  #endif
#endif
