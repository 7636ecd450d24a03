// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A closure that travels as an event, to run where a consumer's handlers run.
struct ConsumerJob: Eventable {
  let body: @Sendable () -> Void
}

extension Consumer {
  /// Has a closure run as one of the consumer's events: in the order of the calls, behind what is
  /// queued with normal priority. False if the consumer is closed, and then the closure is gone.
  func post(_ body: @escaping @Sendable () -> Void) -> Bool {
    // Held over the registration, so that whoever comes second finds the handler.
    hasJobHandler.withLock { hasHandler in
      if !hasHandler {
        addJobHandler()
        hasHandler = true
      }
    }
    return dispatch(ConsumerJob(body: body), lane: Lane(.queue, .normal), through: direct) != 0
  }

  private func addJobHandler() {
    let handler = TypedHandler<ConsumerJob>(plain: { $0.body() })
    _ = add(handler, eventTypeActions(ConsumerJob.self))
  }
}
