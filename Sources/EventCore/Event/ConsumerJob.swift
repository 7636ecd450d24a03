// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An event for a consumer itself: something to run where its handlers run.
enum ConsumerJob: Eventable {
  case closure(@Sendable () -> Void)
  /// A run of another consumer, which has the events, and counts them.
  case guest(@Sendable () -> Void)
  /// A job of Swift's runtime, which is never dropped: `Consumer.jobActions` passes it on. `fromTask`: by
  /// way of the task executor.
  case executor(UnownedJob, fromTask: Bool)
}
