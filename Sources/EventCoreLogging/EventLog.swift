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
  /// let log = EventLog(of: world, workers, sensors, to: logger, backlog: 10_000, slow: .seconds(1))
  /// try await log.run()          // a loop, until the task is cancelled; or a service of a ServiceGroup
  /// ```
  ///
  /// What a handler throws is logged at once, from the making of the log until its last reference goes, on a thread of
  /// the log. Mailboxes and handlers are looked at by ``run()``, or by ``look()``.
  ///
  /// **Threads**: any, for every member.
  public final class EventLog: Sendable {
    private let receivers: [any EventReceiver]
    private let logger: Logger
    private let backlog: Int
    private let slow: Duration
    private let interval: Duration
    private let failures: EventListener
    /// What was said of each receiver.
    private let said: Mutex<[Said]>

    private struct Said {
      /// How many events have to wait until the next word.
      var next: Int
      var isSlow = false
    }

    /// Makes a log, which begins with the handlers that throw from now on.
    ///
    /// - Parameters:
    ///   - central: Whose failures are logged, as errors. While the log is a thousand behind, the oldest are dropped.
    ///   - receivers: Whose mailboxes and handlers are looked at.
    ///   - logger: Where it is written.
    ///   - backlog: How many events wait when a mailbox is said to grow, as a warning; it is said again each time that
    ///     the number has doubled, and once when less than half of them wait.
    ///   - slow: How long a handler runs when it is said, once for each, as a warning. Only pools tell
    ///     (`EventReceiver.handlerRunningFor`).
    ///   - interval: How often ``run()`` looks.
    public init(
      of central: EventCentral = .shared, _ receivers: any EventReceiver..., to logger: Logger, backlog: Int = 10_000,
      slow: Duration = .seconds(1), every interval: Duration = .seconds(1)
    ) {
      require(
        backlog > 0, "An EventLog warns of a backlog of one event or more, and this one of \(backlog): pass 1 or more.")
      self.receivers = receivers
      self.logger = logger
      self.backlog = backlog
      self.slow = slow
      self.interval = interval
      said = Mutex(receivers.map { _ in Said(next: backlog) })
      failures = EventListener(on: central, mailbox: .bounded(1_000, whenFull: .dropOldest), name: "EventLog")
      EventFailure.addListener(
        nil,
        { failure in
          logger.error(
            "A handler threw.", error: failure.error,
            metadata: ["event": "\(failure.eventType)", "error": "\(failure.error)"])
        }, executeOn: .listenerThread, on: failures)
    }

    deinit {
      failures.end()
    }

    /// Looks at all receivers once, and writes what has changed.
    ///
    /// **Complexity**: O(receivers, and threads of pools).
    public func look() {
      for (index, receiver) in receivers.enumerated() {
        let statistics = receiver.mailboxStatistics
        let waiting = receiver.waitingEventCount
        let running = receiver.handlerRunningFor
        // What is to be said is decided under the lock, and said outside of it.
        let words = said.withLock { said -> [(level: Logger.Level, message: Logger.Message)] in
          var words: [(level: Logger.Level, message: Logger.Message)] = []
          if waiting >= said[index].next {
            while said[index].next <= waiting, said[index].next <= Int.max / 2 { said[index].next *= 2 }
            words.append((.warning, "The mailbox grows."))
          } else if said[index].next > backlog, waiting < backlog / 2 + backlog % 2 {
            said[index].next = backlog
            words.append((.notice, "The mailbox has shrunk."))
          }
          let isSlow = running.map { $0 > slow } ?? false
          if isSlow, !said[index].isSlow { words.append((.warning, "A handler does not return.")) }
          said[index].isSlow = isSlow
          return words
        }
        for (level, message) in words {
          var metadata: Logger.Metadata = [
            "receiver": "\(receiver.receiverName)", "waiting": "\(waiting)", "refused": "\(statistics.refused)",
            "dropped": "\(statistics.dropped)",
          ]
          if let running { metadata["running"] = "\(running)" }
          logger.log(level: level, message, metadata: metadata)
        }
      }
    }

    /// Looks again and again, until its task is cancelled; as a service, until the graceful shutdown.
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
        try? await Task.sleep(for: interval)
      }
    }
  }

  #if ServiceLifecycle
    extension EventLog: Service {}
  #endif
#endif
