// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if ServiceLifecycle
  public import Dispatch
  public import EventCore

  /// What an ``EventService`` ends: an event thread, a worker, a pool, a listener or a central. A type of your own can
  /// conform by passing everything on to one of these. Its report has no more than what it passes on: what it keeps to
  /// itself, such as listeners `on:` its thread that run elsewhere, is in no count.
  public protocol EventServicePart: EventReceiver {
    /// The time on the clock of its central after a duration from now.
    func deadline(after limit: Duration) -> DispatchTime
    /// Ends it after it has handled what waits. False if that was not done at the deadline, or when the task was
    /// cancelled; what waited then is freed and counted.
    func drain(until deadline: DispatchTime) async -> Bool
    /// Ends it at once: what waits is freed and counted. Waits for nobody.
    func cancel()
  }

  extension EventThread: EventServicePart {
    public func deadline(after limit: Duration) -> DispatchTime { central.deadline(after: limit) }
  }

  extension EventWorker: EventServicePart {
    public func deadline(after limit: Duration) -> DispatchTime { thread.deadline(after: limit) }
    public func drain(until deadline: DispatchTime) async -> Bool { await thread.drain(until: deadline) }
    public func cancel() { thread.cancel() }
  }

  extension EventPool: EventServicePart {
    public func deadline(after limit: Duration) -> DispatchTime { central.deadline(after: limit) }
  }

  extension EventListener: EventServicePart {
    public func deadline(after limit: Duration) -> DispatchTime { now.later(by: limit) }
    public func cancel() { end() }
  }

  /// The central's schedules and listeners; threads and pools are parts of their own.
  extension EventCentral: EventServicePart {
    public func deadline(after limit: Duration) -> DispatchTime { now.later(by: limit) }
    public func cancel() { end() }
  }

  extension DispatchTime {
    func later(by limit: Duration) -> DispatchTime {
      DispatchTime(uptimeNanoseconds: EventCore.later(uptimeNanoseconds, by: limit))
    }
  }
#endif
