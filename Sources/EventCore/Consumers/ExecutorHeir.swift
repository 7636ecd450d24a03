// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Runs the jobs that a consumer has left. Any thread.
final class ExecutorHeir: Sendable {
  private let queue: DispatchQueue
  private static let mark = DispatchSpecificKey<ObjectIdentifier>()
  /// Orders `begin` before what runs, for ThreadSanitizer, which does not know that `activate` does.
  private let gate = Guarded(())

  /// - Parameter target: The queue on which the consumer ran, if any: jobs of an actor that belong on the main thread
  ///   stay there.
  init(target: DispatchQueue?) {
    queue = DispatchQueue(label: "EventCore.heir", attributes: .initiallyInactive, target: target)
    queue.setSpecific(key: Self.mark, value: ObjectIdentifier(self))
  }

  deinit {
    // Dispatch traps at the end of an inactive queue.
    queue.activate()
  }

  /// Runs it once `begin` was called.
  func run(_ body: @escaping @Sendable () -> Void) {
    queue.async { [gate] in
      gate.withLock { _ in }
      body()
    }
  }

  /// The consumer has ended.
  func begin() {
    gate.withLock { _ in }
    queue.activate()
  }

  var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.mark) == ObjectIdentifier(self) }
}
