// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventThread: SerialExecutor, TaskExecutor {
  /// Runs a job of an actor or a task on the thread, as Swift's runtime asks for it.
  ///
  /// An actor names the thread as its executor, and then shares the thread with its callbacks:
  ///
  /// ```swift
  /// actor Physics {
  ///   let thread: EventThread
  ///   var bodies = 0
  ///   init(on thread: EventThread) { self.thread = thread }
  ///   nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
  ///   func step() { bodies += 1 }
  /// }
  /// ```
  ///
  /// A callback of the thread may call the actor at once: `physics.assumeIsolated { $0.step() }`. It captures the actor
  /// weakly, since the actor keeps the thread, and the thread its callbacks. A task prefers the thread by
  /// `Task(executorPreference: thread) { … }`. One that calls the thread's actors should: where it waits for other
  /// tasks, Swift resumes it there, and not by way of the default executor.
  ///
  /// **Threads**: any. **Order**: a job is an event that was queued with normal priority (D1, D2). A call from one
  /// actor of the thread to another is no job, and lets no event in between. Jobs that the thread has not run when it
  /// ends, and later ones, run on a serial queue after its end, so that no task waits for ever.
  public final func enqueue(_ job: consuming ExecutorJob) { consumer.post(UnownedJob(job), fromTask: true) }

  /// What an actor names as its executor, to run on the thread.
  ///
  /// **Threads**: any. **Ownership**: the actor keeps the thread. **Complexity**:
  /// `UnownedSerialExecutor(ordinary: thread)` is right as well, but takes a job for each call from actor to actor.
  public final func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: consumer) }

  /// Traps unless it is called on the thread, for `assumeIsolated`.
  public final func checkIsolated() { consumer.checkIsolated() }

  /// Whether the caller is on the thread.
  public final func isIsolatingCurrentContext() -> Bool? { consumer.isIsolatingCurrentContext() }
}
