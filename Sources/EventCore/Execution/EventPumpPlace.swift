// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An ``EventPump`` as a place in which listeners are called and actors run. Unlike the pump it is `Sendable`, so that
/// other threads can use it.
///
/// ```swift
/// let place = pump.place
/// Task { Hit.addListener(nil, executeOn: .pump(place), on: world) { hit in score.add(hit.damage) } }
/// ```
///
/// It is also a source: what is registered `on:` the place gets what is sent to the pump alone, too, and what is
/// scheduled `on:` it comes to the pump alone.
///
/// ```swift
/// Hit(damage: 1).scheduleQueue(every: .seconds(1), limit: 60, on: place)
/// ```
///
/// It does not retain the pump, but its central: listeners that are registered after the pump's end are never called.
public final class EventPumpPlace: Sendable {
  let consumer: Consumer
  /// A `PumpSource`, which stands above this file.
  let source: any AnyObject & Sendable

  init(_ consumer: Consumer, _ source: any AnyObject & Sendable) {
    self.consumer = consumer
    self.source = source
    consumer.taskExecutor = UnownedTaskExecutor(ordinary: self)
  }
}

extension EventPumpPlace: SerialExecutor, TaskExecutor {
  /// Runs a job of an actor or a task inside ``EventPump/run(until:limit:)-(ContinuousClock.Instant?,_)``, as Swift's
  /// runtime asks for it. An actor names the place as its executor, and then runs inside the frame:
  /// `nonisolated var unownedExecutor: UnownedSerialExecutor { place.asUnownedSerialExecutor() }`.
  ///
  /// **Threads**, **Order**: as for ``EventThread/enqueue(_:)``.
  public func enqueue(_ job: consuming ExecutorJob) { consumer.post(UnownedJob(job), fromTask: true) }

  /// What an actor names as its executor, to run inside the frame.
  ///
  /// **Threads**: any. **Ownership**: the actor keeps the place, and the loop the pump.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: consumer) }

  /// Traps unless ``isIsolatingCurrentContext()`` is true, for `assumeIsolated`. **Threads**: any.
  public func checkIsolated() { consumer.checkIsolated() }

  /// Whether the caller is inside a run of the pump, or in a job of an actor that comes after the pump's end.
  /// **Threads**: any.
  public func isIsolatingCurrentContext() -> Bool? { consumer.isIsolatingCurrentContext() }
}
