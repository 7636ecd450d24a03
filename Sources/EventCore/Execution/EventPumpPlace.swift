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
/// It does not retain the pump: listeners that are registered after the pump's end are never called.
public final class EventPumpPlace: Sendable {
  let consumer: Consumer

  init(_ consumer: Consumer) {
    self.consumer = consumer
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

  /// What an actor names as its executor, to run inside the frame. The actor keeps the place, and the loop the pump.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: consumer) }

  /// Traps unless it is called inside a run of the pump, for `assumeIsolated`.
  public func checkIsolated() { consumer.checkIsolated() }

  /// Whether the caller is inside a run of the pump.
  public func isIsolatingCurrentContext() -> Bool? { consumer.isIsolatingCurrentContext() }
}
