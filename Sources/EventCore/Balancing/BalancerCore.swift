// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The seam between the module and its two cores: one receiver for a router, whose events go to
/// exactly one of several threads each.
///
/// There is one for each pool and event type. Implementations: the lock-free balancer (C) and the
/// locking balancer (Swift).
protocol BalancerCore: AnyObject, Sendable {
  /// What a router is given. Valid as long as the balancer.
  var subscription: Subscription { get }

  /// Adds a thread's subscription, or replaces what is known about it. Any thread.
  func add(_ subscription: Subscription, generation: UInt32, timed: Bool, load: EventLoad)

  /// Removes a thread's subscription. A dispatch that began before may still reach it. Any thread.
  func remove(_ subscription: Subscription)

  /// How many events it did not accept, since no thread was left. Any thread.
  var refused: UInt64 { get }

  /// How many events it freed, since no thread was left for them after others of their batch had
  /// found one: it has accepted those. Any thread.
  var dropped: UInt64 { get }
}

/// Whom a balancer of either core asks, and what it needs to know about its event type.
final class PoolChooser: @unchecked Sendable {
  // Constant. `drop` captures nothing but the type.
  private let balancer: any EventPoolBalancing
  private let key: UInt
  /// Ends a payload; nil for types without references.
  let drop: ((UnsafeMutableRawPointer) -> Void)?
  /// Where the core counts turns instead of asking; nil for most balancers. Valid as long as this object.
  var turn: UnsafeMutablePointer<Atomic<UInt32>>? { balancer.needs?.turn }

  init(
    _ balancer: any EventPoolBalancing, key: UInt,
    drop: ((UnsafeMutableRawPointer) -> Void)?
  ) {
    self.balancer = balancer
    self.key = key
    self.drop = drop
  }

  /// The number of the thread for an envelope, of `count` whose loads lie `stride` bytes apart.
  @inline(__always)
  func choose(
    _ envelope: UnsafeMutableRawPointer, _ loads: UnsafeRawPointer, stride: Int, count: Int
  ) -> Int {
    let index = balancer.chooseThread(
      for: EventPoolChoice(
        count: count, loads: loads, stride: stride, envelope: envelope, key: key))
    require(
      index >= 0 && index < count,
      """
      An EventPoolBalancing chooses one of the threads that it is offered: there were \(count), and \
      \(type(of: balancer)) chose number \(index). Return a number from 0 to \(count - 1).
      """)
    return index
  }
}
