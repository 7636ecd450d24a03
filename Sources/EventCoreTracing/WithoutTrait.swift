// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if !Tracing
  public import EventCore

  // What a program names first: the compiler then says which trait is missing.

  @available(
    *, unavailable,
    message: "EventCoreTracing needs the package trait Tracing: traits: [.defaults, \"Tracing\"] on the .package line"
  )
  public struct EventContextPropagation {
    public static var contexts: EventContextPropagation { EventContextPropagation() }
    public static func spans(_ tracer: Any? = nil) -> EventContextPropagation { contexts }
  }

  extension EventCentral {
  @available(
    *, unavailable,
    message: "EventCoreTracing needs the package trait Tracing: traits: [.defaults, \"Tracing\"] on the .package line"
  )
    public convenience init<C: Clock<Duration>>(
      core: Core = .default, clock: C = SuspendingClock(), timers: Timers = .thread, tracing: EventContextPropagation
    ) {
      self.init(core: core, clock: clock, timers: timers)
    }
  @available(
    *, unavailable,
    message: "EventCoreTracing needs the package trait Tracing: traits: [.defaults, \"Tracing\"] on the .package line"
  )
    public static func traceShared(_ tracing: EventContextPropagation) {}
  }
#endif
