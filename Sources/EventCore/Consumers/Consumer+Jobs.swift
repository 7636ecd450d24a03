// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

extension Consumer {
  /// Whether it has jobs alone, and everything that was dispatched before is handled. In this order: what is taken
  /// between the two looks has a thread drive it at the second, unless it is handled by then. Any thread.
  var isIdle: Bool {
    guard waiting == 0 else { return false }
    // Between the count of what was taken and the state: pairs with the exchange by which a thread begins to drive, before
    // it takes and counts.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    return pump?.isIdle == true
  }

  /// Ends it on the calling thread, once it was idle, as one that has handled what waits: calls that its task has taken
  /// and not begun are made. Any thread.
  func endIdle() {
    guests.value?.closeMailboxes(whenEmpty: true)
    registry.close(whenEmpty: true)
    mailbox.close()
    pump?.end()
  }

  /// Whether events wait, also those that its task has taken for calls which have not begun. Any thread.
  var hasWaiting: Bool { waiting > 0 || hasCalls }

  /// How many events were freed since it ended, without the jobs that others run or count. Any thread.
  var lostCount: UInt64 {
    // The mailbox of the C core counts a job after it has dropped it, and so after `keptJobs`.
    let (kept, dropped) = (keptJobs.load(ordering: .relaxed), mailbox.counts().dropped)
    return dropped > kept ? dropped - kept : 0
  }

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
