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
      /// How many events were handled during the shutdown; those that no handler wanted count, too.
      public let handled: UInt64
      /// How many events were left unhandled: they are freed, or will be as soon as the handler returns that still
      /// runs. That one's event is in neither count.
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
      private let before: EventThreadStatistics

      init(_ part: any EventServicePart, _ name: String) {
        self.part = part
        self.name = name
        before = part.receiverStatistics
      }

      /// After the end of the part.
      func result(wasDrained: Bool) -> Part {
        var now = part.receiverStatistics
        var waiting = part.waitingEventCount
        // What is being freed at this moment moves from one count to the other.
        for _ in 0..<Self.looks {
          let then = part.receiverStatistics
          if then == now { break }
          now = then
          waiting = part.waitingEventCount
        }
        return Part(
          name: name, wasDrained: wasDrained,
          handled: Self.more(now.delivered, before.delivered) + Self.more(now.skipped, before.skipped),
          left: Self.more(now.cancelled, before.cancelled) + UInt64(max(0, waiting)))
      }

      /// Counts that move may be less for a moment, and those of a part of the user's may be anything.
      private static func more(_ now: UInt64, _ before: UInt64) -> UInt64 { now > before ? now - before : 0 }

      private static let looks = 100
    }
  }
#endif
