// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// The main queue, which is where the main thread is at home and where the MainActor runs.
enum MainQueue {
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether the caller is on the main thread or runs on the main queue. Both have to be asked,
  /// since Dispatch answers for both: under `dispatchMain()` other threads than the first serve the
  /// main queue, and the first thread before that counts as being on it.
  static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }

  /// Whether a queue is the main queue. Its Swift object does not tell: on Linux each look at
  /// `DispatchQueue.main` makes a new one.
  static func isMain(_ queue: DispatchQueue) -> Bool { queue.getSpecific(key: mark) == true }
}

/// The actor on which the caller of `registerListeners()` is, for what that registers: a function
/// that a user implements without a word about isolation.
enum RegisteringActor {
  private final class Holder {
    let actor: any Actor
    init(_ actor: any Actor) { self.actor = actor }
  }
  private static let current = ThreadLocal<Holder>()

  /// Nil outside of `registerListeners()`, and if its caller is on no actor.
  static var value: (any Actor)? { current.value?.actor }

  /// Runs `register`, which registers listeners, for a caller on `actor`.
  static func with(_ actor: (any Actor)?, _ register: () -> Void) {
    guard let actor else { return register() }
    current.with(Holder(actor), register)
  }
}
