// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A pool that is making a thread, as the thread's initialiser finds it.
///
/// The first thread of the pool's class that is made meanwhile, on the same thread, is the pool's.
/// It takes its events from the pool, and its central too if it names none. Others that the closure
/// makes are threads as ever.
final class PoolConstruction {
  private static let current = ThreadLocal<PoolConstruction>()

  private let accepts: (EventThread.Type) -> Bool
  private let membership: PoolMembership
  private var isTaken = false

  private init(_ membership: PoolMembership, accepts: @escaping (EventThread.Type) -> Bool) {
    self.membership = membership
    self.accepts = accepts
  }

  /// Has a closure make the thread for a membership.
  static func make(
    _ membership: PoolMembership, accepts: @escaping (EventThread.Type) -> Bool, by body: () -> EventThread
  ) -> EventThread {
    let thread = current.with(PoolConstruction(membership, accepts: accepts), body)
    require(
      thread.consumer.hooks.member === membership.member,
      """
      An EventPool's closure makes a new thread for each call and returns it, and what it returned is \
      another \(type(of: thread)) than the first that it made. Make the thread in the closure itself; \
      if it has helpers of the same class, make them before the pool or after \
      the thread.
      """)
    return thread
  }

  /// The membership that a thread under construction is for, if it is a pool's.
  static func takeMembership(for type: EventThread.Type, on central: EventCentral) -> PoolMembership? {
    guard let construction = current.value, !construction.isTaken, construction.accepts(type) else {
      return nil
    }
    let membership = construction.membership
    require(
      central === EventCentral.shared || central === membership.central,
      """
      A thread of a pool gets its events from the pool, and \(type) asked for a central that is not \
      the pool's. Pass that central to the EventPool, and none to its threads.
      """)
    construction.isTaken = true
    return membership
  }
}

/// What a thread needs to be one of a pool's.
struct PoolMembership {
  let central: EventCentral
  /// The router for the thread alone.
  let direct: any RouterCore
  let member: PoolMember
  /// Where it is a worker; nil in a pool that is balanced.
  let shared: SharedMailbox?
  let name: String
  /// Called on the thread when it has ended.
  let didEnd: @Sendable () -> Void

  /// Where its consumer registers.
  var routes: any RouteRegistry { shared == nil ? member : direct }
}
