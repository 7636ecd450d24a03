// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The executor of the actors of an event thread or a pump. That of tasks is the thread, or the place of the pump, so
/// that each job tells by which of the two it came.
///
/// Both have to be right where a job begins to run: at a call of an actor, Swift's runtime goes on without a job only
/// if the actor's executor and the one that the task prefers, or none, are those of which it was told there. While it
/// was told of the thread as the preferred one for every job, a call from one actor of a thread to another took tasks
/// that prefer none two jobs, 700 ns in place of 40. Told of none, tasks that prefer the thread would take them.
///
/// A job is an event of the consumer. It is never lost, since a task would wait for it for ever: one that the consumer
/// refuses or drops, because it has ended, runs on the consumer's heir, a serial queue that begins when the consumer
/// has ended. So the jobs of an actor still exclude each other.
extension Consumer: SerialExecutor {
  @usableFromInline
  func enqueue(_ job: consuming ExecutorJob) { post(UnownedJob(job), fromTask: false) }

  @usableFromInline
  func checkIsolated() {
    require(
      isExecuting,
      """
      An actor runs on an event thread or a pump, and code that assumes the actor's isolation was called elsewhere: \
      await the actor, or call it inside a handler of that thread or pump.
      """)
  }

  @usableFromInline
  func isIsolatingCurrentContext() -> Bool? { isExecuting }

  private var isExecuting: Bool { isCurrent || heir.value?.isCurrent == true }
}

extension Consumer {
  /// Runs a job. The consumer's thread.
  func run(_ job: UnownedJob, fromTask: Bool) {
    // Not nil: the job was accepted.
    jobs.withValue { jobs in
      let prefers = fromTask || jobs.prefers(job)
      jobs.running(job) { run(job, prefers: prefers) }
    }
  }

  private func run(_ job: UnownedJob, prefers: Bool) {
    let actors = UnownedSerialExecutor(ordinary: self)
    guard prefers, let tasks = taskExecutor else { return job.runSynchronously(on: actors) }
    job.runSynchronously(isolatedTo: actors, taskExecutor: tasks)
  }

  /// Runs a job that the consumer refused or dropped on the heir. Any thread.
  func leave(_ job: UnownedJob, fromTask: Bool) {
    let heir = heir.value {
      let heir = ExecutorHeir(target: pump?.driver.target)
      // The handler that is running may be a job of the same actor.
      Task { [ended] in
        await ended.opened()
        heir.begin()
      }
      return heir
    }
    heir.run { self.run(job, prefers: fromTask) }
  }
}
