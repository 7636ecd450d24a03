// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if ServiceLifecycle
  import EventCore
  public import Logging
  public import ServiceLifecycle

  /// Threads, pools, listeners and centrals as a service of a `ServiceGroup`, which ends them in order when the program
  /// is to shut down.
  ///
  /// ```swift
  /// let events = EventService(sensors, workers, world, drainingFor: .seconds(5), logger: logger)
  /// try await ServiceGroup(
  ///   services: [events, server], gracefulShutdownSignals: [.sigterm], logger: logger
  /// ).run()
  /// ```
  ///
  /// The group shuts its services down in reverse: `server`, which brings the events, ends before `events` drains.
  public struct EventService: Service {
    private let parts: [any EventServicePart]
    private let limit: Duration
    private let logger: Logger?
    private let report: (@Sendable (EventShutdownReport) -> Void)?

    /// Makes a service of parts that run already. It keeps them until it has ended.
    ///
    /// - Parameters:
    ///   - parts: What it ends, one after the other: name those who dispatch before those who handle what they
    ///     dispatch.
    ///   - limit: How long a graceful shutdown may take, for all parts together: once it is over, the parts that are
    ///     left end at once. What still waits then is freed and counted (D10).
    ///   - logger: Gets the report, as a warning if something was left unhandled.
    ///   - report: Called once with what the shutdown did and left, before `run()` ends.
    public init(
      _ parts: any EventServicePart..., drainingFor limit: Duration = .seconds(10), logger: Logger? = nil,
      report: (@Sendable (EventShutdownReport) -> Void)? = nil
    ) {
      self.init(parts, drainingFor: limit, logger: logger, report: report)
    }

    /// The same for an array of parts.
    public init(
      _ parts: [any EventServicePart], drainingFor limit: Duration = .seconds(10), logger: Logger? = nil,
      report: (@Sendable (EventShutdownReport) -> Void)? = nil
    ) {
      self.parts = parts
      self.limit = limit
      self.logger = logger
      self.report = report
    }

    /// Waits for the shutdown, and carries it out.
    ///
    /// A graceful shutdown drains each part in turn, so that nothing is sent to a part that has ended, and returns. The
    /// cancellation of the task, also during that, ends all parts at once: handlers that run finish, and nobody waits
    /// for them.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    ///
    /// **Threads**: any task. Once.
    public func run() async throws {
      do {
        try await gracefulShutdown()
      } catch {
        let parts = countings
        for part in parts { part.part.cancel() }
        tell(EventShutdownReport(parts: parts.map { $0.result(wasDrained: false) }, wasCancelled: true))
        throw error
      }
      let parts = countings
      // Each on the clock of its own central, and all from the same moment.
      let deadlines = parts.map { $0.part.deadline(after: limit) }
      var results: [EventShutdownReport.Part] = []
      for (part, deadline) in zip(parts, deadlines) {
        let wasDrained = await part.part.drain(until: deadline)
        results.append(part.result(wasDrained: wasDrained))
      }
      tell(EventShutdownReport(parts: results, wasCancelled: Task.isCancelled))
      try Task.checkCancellation()
    }

    /// The parts with what they have counted so far.
    private var countings: [EventShutdownReport.Counting] {
      zip(parts, (parts as [any EventReceiver]).distinctNames).map(EventShutdownReport.Counting.init)
    }

    private func tell(_ result: EventShutdownReport) {
      logger?.log(level: result.isComplete ? .info : .warning, "\(result)")
      report?(result)
    }
  }
#endif
