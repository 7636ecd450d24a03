// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Counts how many of its tokens are alive.
public final class Lifetime: Sendable {
  private let count = Atomic<Int>(0)
  private let made = Atomic<Int>(0)

  public init() {}

  /// How many tokens are alive now.
  public var alive: Int { count.load(ordering: .acquiring) }
  /// How many were ever made.
  public var total: Int { made.load(ordering: .acquiring) }

  public func token() -> Token { Token(self) }

  /// Alive as long as somebody refers to it.
  public final class Token: Sendable {
    private let lifetime: Lifetime

    fileprivate init(_ lifetime: Lifetime) {
      self.lifetime = lifetime
      lifetime.count.wrappingAdd(1, ordering: .relaxed)
      lifetime.made.wrappingAdd(1, ordering: .relaxed)
    }

    deinit {
      lifetime.count.wrappingSubtract(1, ordering: .releasing)
    }
  }

  /// Waits until no token is alive: what ends them runs on another thread. False after ten minutes.
  public func waitUntilNone() -> Bool { waitUntil { self.alive == 0 } }
}
