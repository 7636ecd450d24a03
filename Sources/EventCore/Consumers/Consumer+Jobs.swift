// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

extension Consumer {
  /// Runs a closure as one of the consumer's events, queued with normal priority. False if the consumer is
  /// closed; the closure has been released then. Any thread.
  func post(_ body: @escaping @Sendable () -> Void) -> Bool { post(.closure(body)) }

  /// The same for a run of a guest.
  func post(guest: ConsumerPump) -> Bool { post(.guest(guest.makeJob())) }

  // Consumed, so that the poster has no reference to a guest that may end meanwhile.
  private func post(_ job: consuming ConsumerJob) -> Bool {
    acceptJobs()
    return dispatch(job, lane: Lane(.queue, .normal), through: direct) != 0
  }

  /// The same for a job of Swift's runtime, which the heir runs if the consumer is closed. `fromTask`: it comes by way
  /// of the task executor.
  func post(_ job: UnownedJob, fromTask: Bool) {
    acceptJobs()
    let jobs = jobs.value
    if !fromTask, let jobs, jobs.isRunning(job, isCurrent) { jobs.didMistake(job) }
    let (event, lane) = (ConsumerJob.executor(job, fromTask: fromTask), Lane(.queue, .normal))
    // Not by `dispatch`, whose result does not tell a job that nobody takes from one that was dropped.
    let payload = direct.beginOne(
      key: eventKey(ConsumerJob.self), lane: lane.index, size: MemoryLayout<ConsumerJob>.size,
      alignment: MemoryLayout<ConsumerJob>.alignment)
    if let payload {
      payload.initializeMemory(as: ConsumerJob.self, to: event)
      _ = direct.commitOne(payload)
    } else if dispatchWithOutcome(event, lane: lane, through: direct) == EventDispatchOutcome() {
      leave(job, fromTask: fromTask)
    }
  }

  /// Has the consumer run the jobs that are dispatched through `direct` from now on. Any thread.
  func acceptJobs() {
    if jobs.withValue({ _ in () }) == nil { beginToAcceptJobs() }
  }

  private func beginToAcceptJobs() {
    // Locked during the registration, so that a second caller finds the handler registered.
    hasJobHandler.withLock { hasHandler in
      guard !hasHandler else { return }
      hasHandler = true
      // Neither is retained: the consumer has the handler, and calls it.
      let consumer = Unmanaged.passUnretained(self)
      let handler = TypedHandler<ConsumerJob>(plain: { job in
        switch job {
        case .closure(let body), .guest(let body): body()
        case .executor(let job, let fromTask): consumer._withUnsafeGuaranteedRef { $0.run(job, fromTask: fromTask) }
        }
      })
      _ = registry.add(handler, jobActions)
      // Last, since it shows that the handler is registered.
      _ = jobs.value { ConsumerJobs() }
    }
  }

  /// As for any event, but that a job which is dropped is left to the heir.
  private var jobActions: EventTypeActions {
    let actions = eventTypeActions(ConsumerJob.self)
    return EventTypeActions(
      key: actions.key, size: actions.size, deliver: actions.deliver, deliverDirectly: actions.deliverDirectly,
      drop: { [weak self] payload in
        let event = payload.assumingMemoryBound(to: ConsumerJob.self).move()
        if case .closure = event {
          self?.droppedJobs.add(1, ordering: .relaxed)
          return
        }
        self?.keptJobs.add(1, ordering: .relaxed)
        self?.droppedJobs.add(1, ordering: .relaxed)
        guard case .executor(let job, let fromTask) = event else { return }
        require(
          self != nil,
          """
          An actor keeps the event thread or the place of the pump on which it runs, and one that does not was waiting \
          for a job: store the thread or the place in the actor.
          """)
        self?.leave(job, fromTask: fromTask)
      })
  }
}
