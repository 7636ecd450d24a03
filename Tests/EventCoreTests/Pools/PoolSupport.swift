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
  /// Whether it registers its callback, or leaves that to whoever makes it.
  let registers: Bool

  init(
    _ index: Int, _ log: Log<Handled>, token: Lifetime.Token? = nil, registers: Bool = true,
    body: (@Sendable (JobThread, Job) -> Void)? = nil
  ) {
    self.index = index
    self.log = log
    self.token = token
    self.registers = registers
    self.body = body
    super.init()
  }

  @available(*, unavailable, message: "needs a log")
  required init() { preconditionFailure("needs a log") }

  override func registerEventListeners() {
    if registers { addEventCallback(JobThread.onJob) }
  }

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

  /// - Parameter complete: If given, the threads come without their callback, and the pool's
  ///   closure registers it after this.
  init(
    _ core: EventCentral.Core, _ capacity: Int,
    _ balancer: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    scaler: any EventPoolScaling = FixedScaler(),
    body: (@Sendable (JobThread, Job) -> Void)? = nil,
    complete: (@Sendable (JobThread) -> Void)? = nil
  ) {
    let central = EventCentral(core: core)
    self.central = central
    let (log, lifetime) = (log, lifetime)
    pool = EventPool(capacity: capacity, balancer: balancer, scaler: scaler, on: central) { index in
      let thread = JobThread(
        index, log, token: lifetime.token(), registers: complete == nil, body: body)
      if let complete {
        complete(thread)
        thread.addEventCallback(JobThread.onJob)
      }
      return thread
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
