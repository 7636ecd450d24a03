// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Keeps a central under observation as long as the object lives: store it in a property of whoever looks on.
///
/// **Threads**: any, for every member.
public final class EventObservation: Sendable {
  private let instruments: Instruments
  private let router: any RouterCore
  private let number: Int
  private let whenEnded: @Sendable () -> Void

  init(
    _ central: EventCentral, _ wish: Instruments.Wish, whenEnded: @escaping @Sendable () -> Void = {}
  ) {
    instruments = central.basis.instruments
    let router = central.router
    self.router = router
    self.whenEnded = whenEnded
    number = instruments.begin(wish) { router.observe(by: $0) }
  }

  deinit {
    end()
  }

  /// Ends the observation before the object. A second call does nothing.
  ///
  /// Events that are dispatched at the same time may still be counted, and a report that has begun finishes.
  public func end() {
    instruments.end(number) { router.observe(by: $0) }
    whenEnded()
  }
}

/// Which events are timed.
public enum EventSampling: Sendable, Hashable {
  /// None: events are only counted.
  case none
  /// One of so many dispatches of a type by a thread, the first one among them. One of 1 is all.
  case every(Int)

  /// All of them.
  public static var all: EventSampling { .every(1) }

  /// As `Instruments.sampling`.
  var period: UInt32 {
    switch self {
    case .none: return 0
    case .every(let number):
      require(
        number > 0 && number <= Int(Int32.max),
        """
        A sampling times one of so many dispatches, 1 to 2,147,483,647, and this one is \(number): pass .all for each of \
        them, or .none.
        """)
      return UInt32(number)
    }
  }
}

extension EventCentral {
  /// Counts what happens to each event from now on, for ``statistics`` and ``flowGraph``, until the object that it
  /// returns is released.
  ///
  /// ```swift
  /// let observation = world.observe()
  /// play()
  /// print(world.statistics)
  /// observation.end()
  /// ```
  ///
  /// Whatever is dispatched after this returns is counted, exactly. Histograms show events that were timed: those of
  /// the sampling, of the one with the most if several observe the central. The figures stay when an observation ends,
  /// and the next one goes on from there.
  ///
  /// - Parameter times: Which events are timed. Each takes three looks at the central's clock.
  /// - Returns: Keep it for as long as you want to observe.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Complexity**: O(receivers and their types) to begin and to end. A central that nobody observes pays nothing.
  /// Counting takes some two nanoseconds an event on the thread that dispatches, and none on the one that handles; an
  /// event that a handler dispatches to its own thread goes the way of others then. Each type at each receiver takes 30
  /// kB once one of its events was timed.
  public func observe(times: EventSampling = .every(64)) -> EventObservation {
    EventObservation(self, Instruments.Wish(sampling: times.period))
  }

  /// What happens inside: who dispatches which events, and what each receiver does with them.
  ///
  /// **Threads**: any; it runs no user code. **Complexity**: O(receivers and their types), some microseconds each.
  public var statistics: EventStatistics { EventStatistics(basis.instruments) }

  /// For EventCoreMetrics: the same, with one receiver for each name.
  package var statisticsByName: EventStatistics { EventStatistics(basis.instruments, byName: true) }

  /// Who dispatches which events to whom, with the counts of ``statistics``.
  ///
  /// **Threads**, **Complexity**: as there.
  public var flowGraph: EventFlowGraph { EventFlowGraph(statistics) }
}
