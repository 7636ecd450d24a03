// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// An executor whose jobs are events of a consumer: of an event thread or a pump.
///
/// A job is never lost, since a task would wait for it for ever. One that the consumer refuses or drops, because it
/// has ended, runs on the consumer's heir, a serial queue that begins when the consumer has ended. So the jobs of an
/// actor still exclude each other.
protocol ConsumerExecutor: SerialExecutor, TaskExecutor {
  var consumer: Consumer { get }
}

extension ConsumerExecutor {
  func post(_ job: UnownedJob) {
    let box = ExecutorJobBox(job, self)
    _ = consumer.post(box.run)
  }

  func run(_ job: UnownedJob) {
    job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
  }

  var isCurrent: Bool { consumer.isCurrent || consumer.heir.value?.isCurrent == true }

  func requireCurrent() {
    require(
      isCurrent,
      """
      An actor runs on an event thread or a pump, and code that assumes the actor's isolation was called elsewhere: \
      await the actor, or call it inside a handler of that thread or pump.
      """)
  }
}

/// A job on its way to the consumer. Its end without a run passes the job on to the heir.
private final class ExecutorJobBox<Executor: ConsumerExecutor>: Sendable {
  private let job: UnownedJob
  private let executor: Executor
  /// Relaxed: the closure's reference to the box orders the run before `deinit`.
  private let hasRun = Atomic<Bool>(false)

  init(_ job: UnownedJob, _ executor: Executor) {
    self.job = job
    self.executor = executor
  }

  @Sendable func run() {
    hasRun.store(true, ordering: .relaxed)
    executor.run(job)
  }

  deinit {
    guard !hasRun.load(ordering: .relaxed) else { return }
    executor.consumer.leave { [job, executor] in executor.run(job) }
  }
}

extension Consumer {
  /// Runs something on the heir.
  fileprivate func leave(_ body: @escaping @Sendable () -> Void) {
    let heir = heir.value {
      let heir = ExecutorHeir(target: (pump?.driver as? QueueDriver)?.queue)
      // The handler that is running may be a job of the same actor.
      Task { [ended] in
        await ended.opened()
        heir.begin()
      }
      return heir
    }
    heir.run(body)
  }
}
