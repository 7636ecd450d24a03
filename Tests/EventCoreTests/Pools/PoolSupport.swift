// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport

/// Every way to balance that the suites run through.
enum Balance: CaseIterable, Sendable {
  case roundRobin, lowestLoad, keyed, custom, shared

  func make() -> any EventPoolBalancing {
    switch self {
    case .roundRobin: EventPoolRoundRobinBalancer()
    case .lowestLoad: EventPoolLowestLoadBalancer()
    case .keyed: EventPoolKeyedBalancer { (job: Job) in job.key }
    case .custom: LastBalancer()
    case .shared: EventPoolSharedBalancer()
    }
  }

  /// Those that choose a thread when an event is dispatched.
  static let balanced: [Balance] = [.roundRobin, .lowestLoad, .keyed, .custom]
}

/// A user's own.
struct LastBalancer: EventPoolBalancing {
  func chooseThread(for choice: borrowing EventPoolChoice) -> Int { choice.count - 1 }
}

struct Job: Eventable {
  var number = 0
  var key = 0
  var token: Lifetime.Token?
  /// The handler says that it has begun, and waits.
  var entered: Gate?
  var leave: Gate?
}

struct Handled: Sendable, Equatable {
  var thread: Int
  var number: Int
}

/// A thread of a pool that notes what it handles.
final class JobThread: EventThread, @unchecked Sendable {
  // Constant.
  let index: Int
  let log: Log<Handled>
  let token: Lifetime.Token?
  let body: (@Sendable (JobThread, Job) -> Void)?

  init(
    _ index: Int, _ log: Log<Handled>, token: Lifetime.Token? = nil,
    body: (@Sendable (JobThread, Job) -> Void)? = nil
  ) {
    self.index = index
    self.log = log
    self.token = token
    self.body = body
    super.init()
  }

  @available(*, unavailable, message: "needs a log")
  required init() { preconditionFailure("needs a log") }

  override func registerEventListeners() { addEventCallback(JobThread.onJob) }

  func onJob(_ job: Job) {
    job.entered?.open()
    job.leave?.pass()
    body?(self, job)
    log.append(Handled(thread: index, number: job.number))
  }
}

/// A pool of `JobThread`s with their log.
struct JobPool: Sendable {
  let central: EventCentral
  let log = Log<Handled>()
  let lifetime = Lifetime()
  let pool: EventPool<JobThread>

  init(
    _ core: EventCentral.Core, _ capacity: Int,
    _ balancer: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    scaler: any EventPoolScaling = EventPoolStaticScaler(),
    body: (@Sendable (JobThread, Job) -> Void)? = nil
  ) {
    central = EventCentral(core: core)
    let (log, lifetime) = (log, lifetime)
    pool = EventPool(capacity: capacity, balancer: balancer, scaler: scaler, on: central) { index in
      JobThread(index, log, token: lifetime.token(), body: body)
    }
  }

  /// Has every thread of the pool stand in a handler.
  func holdAll() -> [HeldThread] {
    pool.withThreads { threads in threads.map { HeldThread($0) } }
  }
}

/// Keeps a pool until the test, or a handler, lets it go.
final class PoolHolder: Sendable {
  private let pool: Guarded<EventPool<JobThread>?>

  init(_ pool: EventPool<JobThread>?) { self.pool = Guarded(pool) }

  func letGo() {
    let pool = pool.withLock { pool in
      defer { pool = nil }
      return pool
    }
    withExtendedLifetime(pool) {}
  }
}

/// The pool suites by core and way to balance.
let balances: [(EventCentral.Core, Balance)] = cores.flatMap { core in
  Balance.allCases.map { (core, $0) }
}
