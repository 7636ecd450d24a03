// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Tells the initialiser of an event thread that a pool is making it.
///
/// While a pool's closure runs, the first thread of the pool's class that it makes becomes a thread of the
/// pool: it gets its events from the pool, and its central unless it names one. Further threads that the
/// closure makes are ordinary ones.
final class PoolConstruction {
  private static let current = ThreadLocal<PoolConstruction>()

  private let accepts: (EventThread.Type) -> Bool
  private let membership: PoolMembership
  private var isTaken = false

  private init(_ membership: PoolMembership, accepts: @escaping (EventThread.Type) -> Bool) {
    self.membership = membership
    self.accepts = accepts
  }

  /// Calls a closure that makes the thread of a membership.
  static func make(
    _ membership: PoolMembership, accepts: @escaping (EventThread.Type) -> Bool, by body: () -> EventThread
  ) -> EventThread {
    let thread = current.with(PoolConstruction(membership, accepts: accepts), body)
    refuseMainThread(type(of: thread))
    require(
      thread.consumer.hooks.member === membership.member,
      """
      An EventPool's closure makes a new thread for each call and returns it, and what it returned is \
      another \(type(of: thread)) than the first that it made. Make the thread in the closure itself; \
      if it has helpers of the same class, make them before the pool or after the thread.
      """)
    return thread
  }

  static func refuseMainThread(_ type: EventThread.Type) {
    require(
      !(type is UIEventThread.Type),
      """
      The threads of an EventPool work side by side, and \(type) is a UIEventThread, whose \
      callbacks all run on the main thread. Make one of it, or a pool of another class.
      """)
  }

  /// The membership of a thread that is being made, if a pool makes it.
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

/// What a thread of a pool needs to know about the pool.
struct PoolMembership {
  let central: EventCentral
  /// The router for events that are sent to this thread alone.
  let direct: any RouterCore
  let member: PoolMember
  /// The mailbox from which the thread takes as a worker; nil in a balanced pool.
  let shared: SharedMailbox?
  /// How many events may wait for this thread alone.
  let mailbox: EventMailboxCapacity
  let name: String
  /// Called on the thread when it has ended.
  let didEnd: @Sendable () -> Void

  /// Where the consumer of the thread registers.
  var routes: any RouteRegistry { shared == nil ? member : direct }
}
