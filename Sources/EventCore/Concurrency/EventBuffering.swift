// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Which events wait for a sequence while its task does something else.
public enum EventBuffering: Sendable, Equatable {
  /// All of them. Memory grows while the task falls behind.
  case unbounded
  /// The newest one. It replaces the event that waits, and constant memory does.
  case latest
}
