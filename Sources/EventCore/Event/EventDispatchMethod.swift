// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// By which discipline an event waits for its receiver.
public enum EventDispatchMethod: Int, CaseIterable, Sendable {
  /// Last in, first out, and before everything that is queued.
  case stack
  /// First in, first out.
  case queue
}
