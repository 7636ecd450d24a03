// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

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
