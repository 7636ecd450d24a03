// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What both cores implement for a balanced pool: a sink that is one receiver in a router, and passes each
/// event on to exactly one of several threads. A pool has one for each event type.
protocol BalancerCore: AnyObject, Sendable {
  /// What is registered in a router. Valid as long as the balancer.
  var subscription: Subscription { get }

  /// Adds a thread's subscription, or changes its generation and `timed`. Any thread.
  func add(_ subscription: Subscription, generation: UInt32, timed: Bool, load: EventLoad)

  /// Removes a thread's subscription. A dispatch that began before may still reach it. Any thread.
  func remove(_ subscription: Subscription)

  /// Removes all threads, before they are closed: what then finds its thread closed goes to no other one. Any thread.
  func removeAll()

  /// How many events were refused because no thread was left, also of an array of which another part was accepted. Any
  /// thread.
  var refused: UInt64 { get }
}

/// A pool's balancer as the cores ask it, with what they need to know about one event type.
final class PoolChooser: @unchecked Sendable {
  // Constant. `drop` captures nothing but the type.
  let balancer: any EventPoolBalancing
  private let key: UInt
  /// Ends a payload; nil for types without references.
  let drop: ((UnsafeMutableRawPointer) -> Void)?
  /// The counter of a round-robin balancer, which the core counts up instead of asking it; nil for all other
  /// balancers. Valid as long as the balancer.
  var turn: UnsafeMutablePointer<Atomic<UInt32>>? { balancer.needs?.turn }

  /// That of the routers; nil for the system's.
  let clock: CentralClock?

  init(
    _ balancer: any EventPoolBalancing, key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?,
    _ clock: CentralClock?
  ) {
    self.clock = clock
    self.balancer = balancer
    self.key = key
    self.drop = drop
  }

  /// Returns which of `count` threads, whose loads lie `stride` bytes apart, gets an envelope.
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
