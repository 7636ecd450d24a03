// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if ServiceLifecycle
  import EventCore

  /// What the shutdown of an ``EventService`` did, and what it left.
  public struct EventShutdownReport: Sendable, Equatable, CustomStringConvertible {
    /// One part of the service.
    public struct Part: Sendable, Equatable {
      /// What it is called: the name that it was given, or its type (`EventReceiver.receiverName`). Of several with one
      /// name the second is `Name-2`, and so on.
      public let name: String
      /// What the drain of the part returned: whether everything that waited was handled, in time. It may be false
      /// although nothing was left, if a part before it has used up the limit.
      public let wasDrained: Bool
      /// How many events were handled during the shutdown; those that no handler wanted count, too. An event counts
      /// once for the part itself, and once for each other place where listeners `on:` it got it.
      public let handled: UInt64
      /// How many events were left unhandled: they are freed, or will be as soon as the handler returns that still
      /// runs. That one's event is in neither count. Likewise for each other place where listeners run that are
      /// registered `on:` the part; those `on:` another part or central count there, also if they run on this one.
      ///
      /// A job of an actor or a task on a thread counts as an event while it waits behind a handler that does not
      /// return; after that it runs elsewhere, and counts no more.
      public let left: UInt64
    }

    /// The parts in the order in which they were ended.
    public let parts: [Part]
    /// Whether the service was cancelled, at the beginning or in the middle of a graceful shutdown.
    public let wasCancelled: Bool

    /// How many events were left unhandled in all parts.
    public var left: UInt64 { parts.reduce(0) { $0 + $1.left } }
    /// Whether each part has handled everything: all were drained, and nothing was left. A listener or a sequence that
    /// ends during the drain of its part may leave something.
    public var isComplete: Bool { parts.allSatisfy(\.wasDrained) && left == 0 }

    /// A sentence for a log.
    public var description: String {
      let parts = parts.map {
        "\($0.name) \($0.wasDrained ? "was drained" : "was ended"), \($0.handled) handled, \($0.left) left"
      }
      let all = parts.isEmpty ? "there was nothing to end" : parts.joined(separator: "; ")
      return "\(wasCancelled ? "Cancelled" : "Shut down"): \(all)."
    }

    /// A part with its counts at the beginning of the shutdown.
    struct Counting {
      let part: any EventServicePart
      private let name: String
      private let before: Look

      init(_ part: any EventServicePart, _ name: String) {
        self.part = part
        self.name = name
        before = Look(part)
      }

      /// What a part has counted so far, with the listeners `on:` it that run elsewhere, and without jobs that do.
      private struct Look: Equatable {
        let handled: UInt64
        let cancelled: UInt64

        init(_ part: any EventServicePart) {
          let elsewhere = (part as? any WorkingElsewhere)?.elsewhere ?? WorkElsewhere()
          let counts = part.receiverStatistics
          // Wrapping, since a part of the user's may report anything.
          handled =
            counts.delivered &+ counts.skipped &+ elsewhere.statistics.delivered &+ elsewhere.statistics.skipped
          cancelled = counts.cancelled &+ elsewhere.statistics.cancelled &- min(counts.cancelled, elsewhere.jobs)
        }
      }

      private var waiting: Int {
        part.waitingEventCount + ((part as? any WorkingElsewhere)?.elsewhere.waiting ?? 0)
      }

      /// After the end of the part.
      func result(wasDrained: Bool) -> Part {
        var now = Look(part)
        var waiting = waiting
        // What is being freed at this moment moves from one count to the other.
        for _ in 0..<Self.looks {
          let then = Look(part)
          if then == now { break }
          now = then
          waiting = self.waiting
        }
        return Part(
          name: name, wasDrained: wasDrained,
          handled: Self.more(now.handled, before.handled),
          left: Self.more(now.cancelled, before.cancelled) + UInt64(max(0, waiting)))
      }

      /// Counts that move may be less for a moment, and those of a part of the user's may be anything.
      private static func more(_ now: UInt64, _ before: UInt64) -> UInt64 { now > before ? now - before : 0 }

      private static let looks = 100
    }
  }
#endif
