// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An event that carries a closure, to run it where a consumer's handlers run.
struct ConsumerJob: Eventable {
  let body: @Sendable () -> Void
}
