// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Tracing
  public import EventCore

  extension EventCentral {
    /// Makes a central whose events carry the contexts of traces.
    ///
    /// - Parameters:
    ///   - core: The implementation.
    ///   - clock: As for `EventCentral.init(core:clock:timers:)`.
    ///   - timers: Who dispatches scheduled events. They carry the context of whoever made the schedule.
    ///   - tracing: Whether contexts travel alone, or each handling is a span.
    ///
    /// **Complexity**: a dispatch inside a context takes one allocation, and each event eight bytes more.
    public convenience init<C: Clock<Duration>>(
      core: Core = .default, clock: C = SuspendingClock(), timers: Timers = .thread, tracing: EventContextPropagation
    ) {
      self.init(core: core, clock: clock, timers: timers, carrier: tracing.carrier)
    }

    /// Has the events of `EventCentral.shared` carry the contexts of traces. Call it once, at the start of the program:
    /// after the first use of the shared central it traps.
    public static func traceShared(_ tracing: EventContextPropagation) {
      guard carryOnShared(tracing.carrier) else {
        fatalError(
          """
          EventCentral.traceShared(_:) decides what the events of the shared central carry, before its first use, and \
          it is in use: call it at the start of the program.
          """)
      }
    }
  }
#endif
