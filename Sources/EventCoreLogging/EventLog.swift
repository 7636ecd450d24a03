// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Logging
  public import EventCore
  public import Logging
  import Synchronization
  #if ServiceLifecycle
    public import ServiceLifecycle
  #endif

  /// Writes to a log what an operator has to know of a central: handlers that throw, mailboxes that grow, and handlers
  /// that do not return.
  ///
  /// ```swift
  /// let log = EventLog(of: world, workers, sensors, to: logger, backlog: 10_000, slow: .milliseconds(100))
  /// try await log.run()          // a loop, until the task is cancelled; or a service of a ServiceGroup
  /// ```
  ///
  /// Handlers are logged from the making of the log until its last reference goes: those that throw on a thread of the
  /// log, slow ones on a queue of its watch. Mailboxes are looked at by ``run()``, or by ``look()``.
  /// Where a central is observed, the end of ``run()`` shows as an event `EventLog.Mark`, by which the log waits for the
  /// failures before it.
  ///
  /// **Threads**: any, for every member.
  public final class EventLog: Sendable {
    private let receivers: [any EventReceiver]
    private let names: [String]
    private let logger: Logger
    private let backlog: Int
    private let interval: Duration
    private let failures: EventListener
    private let watch: EventObservation?
    private let isDeterministic: Bool
    /// How many events of each receiver have to wait until the next word.
    private let next: Mutex<[Int]>

    /// Makes a log, which begins with the handlers that throw from now on.
    ///
    /// - Parameters:
    ///   - central: Whose failures are logged, as errors: handlers that throw, answers that come too late, but not those
    ///     that came after another's. While the log is a thousand behind, the oldest are dropped.
    ///   - receivers: Whose mailboxes are looked at. They are kept alive. Of several with one name the second is
    ///     `Name-2`, and so on. For listeners `on:` a thread or a pool that run elsewhere name its `listener`, too.
    ///   - logger: Where it is written.
    ///   - backlog: How many events wait when a mailbox is said to grow, as a warning; it is said again each time that
    ///     the number has doubled, and once when less than half of them wait.
    ///   - slow: How long the handlers of a receiver may take for one event; longer ones are warnings, while they run and
    ///     when they have returned. Nil, which costs nothing, is for ever; see `EventCentral.watch(slowerThan:_:)`.
    ///     Handlers and answerers that are `async` are not watched.
    ///   - interval: After how long ``run()`` looks again, more than nothing.
    public convenience init(
      of central: EventCentral = .shared, _ receivers: any EventReceiver..., to logger: Logger, backlog: Int = 10_000,
      slow: Duration? = nil, every interval: Duration = .seconds(1)
    ) {
      self.init(of: central, receivers, to: logger, backlog: backlog, slow: slow, every: interval)
    }

    /// The same for an array of receivers.
    public init(
      of central: EventCentral = .shared, _ receivers: [any EventReceiver], to logger: Logger, backlog: Int = 10_000,
      slow: Duration? = nil, every interval: Duration = .seconds(1)
    ) {
      require(
        backlog > 0, "An EventLog warns of a backlog of one event or more, and this one of \(backlog): pass 1 or more.")
      require(
        interval > .zero,
        """
        An EventLog looks again after a time that is greater than 0, and this one after \(interval): pass a positive \
        duration.
        """)
      self.receivers = receivers
      names = receivers.distinctNames
      self.logger = logger
      self.backlog = backlog
      self.interval = interval
      isDeterministic = central.isDeterministic
      next = Mutex(receivers.map { _ in backlog })
      failures = EventListener(on: central, mailbox: .bounded(1_000, whenFull: .dropOldest), name: "EventLog")
      watch = slow.map { slow in
        central.watch(slowerThan: slow) { handler in
          logger.warning(
            handler.hasReturned ? "A handler took long." : "A handler does not return.",
            metadata: [
              "event": "\(handler.type)", "receiver": "\(handler.receiver)", "duration": "\(handler.duration)",
              "waiting": "\(handler.waiting)",
            ])
        }
      }
      EventFailure.addListener(
        nil,
        { failure in
          // Of several answerers one is the first, and the others have not failed.
          if failure.lateAnswer != nil, failure.error as? EventWaitError == .answeredByAnother { return }
          logger.error(
            failure.lateAnswer == nil ? "A handler threw." : "An answer came too late.", error: failure.error,
            metadata: ["event": "\(failure.eventType)", "error": "\(failure.error)"])
        }, executeOn: .listenerThread, on: failures)
      Mark.addListener(nil, { _ in }, executeOn: .listenerThread, on: failures)
    }

    /// Comes behind all failures that wait. Its end is told however it ends: handled, dropped in favour of a later failure,
    /// or freed with the listener.
    private struct Mark: Eventable {
      final class End: Sendable {
        let continuation: AsyncStream<Never>.Continuation
        init(continuation: AsyncStream<Never>.Continuation) { self.continuation = continuation }
        deinit { continuation.finish() }
      }
      let end: End
    }

    deinit {
      failures.end()
      watch?.end()
    }

    /// Looks at all mailboxes once, and writes what has changed.
    ///
    /// **Complexity**: O(receivers).
    public func look() {
      for (index, receiver) in receivers.enumerated() {
        let waiting = receiver.waitingEventCount
        // What is to be said is decided under the lock, and said outside of it.
        let word = next.withLock { next -> (level: Logger.Level, message: Logger.Message)? in
          if waiting >= next[index] {
            while next[index] <= waiting, next[index] <= Int.max / 2 { next[index] *= 2 }
            return (.warning, "The mailbox grows.")
          }
          guard next[index] > backlog, waiting < backlog / 2 + backlog % 2 else { return nil }
          next[index] = backlog
          return (.notice, "The mailbox has shrunk.")
        }
        guard let word else { continue }
        let statistics = receiver.mailboxStatistics
        logger.log(
          level: word.level, word.message,
          metadata: [
            "receiver": "\(names[index])", "waiting": "\(waiting)", "refused": "\(statistics.refused)",
            "dropped": "\(statistics.dropped)",
          ])
      }
    }

    /// Looks again and again, until its task is cancelled; as a service, until the graceful shutdown. Then it looks once
    /// more, and waits until the failures that were dispatched before are logged. Name it before the services whose handlers
    /// it logs, since a group shuts the last one down first.
    public func run() async throws {
      #if ServiceLifecycle
        await cancelWhenGracefulShutdown { await self.lookUntilCancelled() }
      #else
        await lookUntilCancelled()
      #endif
    }

    private func lookUntilCancelled() async {
      while !Task.isCancelled {
        look()
        // The runtime traps at some hundred years.
        try? await Task.sleep(for: min(interval, .seconds(Int64(1) << 31)))
      }
      look()
      // A deterministic central is run by whoever waits here, if at all.
      guard !isDeterministic else { return }
      let (end, mark) = AsyncStream.makeStream(of: Never.self)
      // As the failures: an event of another priority would be dropped before those that it waits for, or overtake them.
      failures.queueEvent(Mark(end: Mark.End(continuation: mark)), priority: .normal)
      // In a task of its own, since this one is cancelled.
      await Task { for await _ in end {} }.value
    }
  }

  #if ServiceLifecycle
    extension EventLog: Service {}
  #endif
#endif
