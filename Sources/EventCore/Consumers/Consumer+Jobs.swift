// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Consumer {
  /// Runs a closure as one of the consumer's events, queued with normal priority. False if the consumer is
  /// closed; the closure has been released then. Any thread.
  func post(_ body: @escaping @Sendable () -> Void) -> Bool {
    acceptJobs()
    return dispatch(ConsumerJob(body: body), lane: Lane(.queue, .normal), through: direct) != 0
  }

  /// Has the consumer run the jobs that are dispatched through `direct` from now on. Any thread.
  func acceptJobs() {
    // Locked during the registration, so that a second caller finds the handler registered.
    hasJobHandler.withLock { hasHandler in
      guard !hasHandler else { return }
      hasHandler = true
      _ = registry.add(
        TypedHandler<ConsumerJob>(plain: { $0.body() }), eventTypeActions(ConsumerJob.self))
    }
  }
}
