// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport

/// The balancers with which the suites run.
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

  /// The balancers that choose a thread when an event is dispatched.
  static let balanced: [Balance] = [.roundRobin, .lowestLoad, .keyed, .custom]
}

/// A balancer of a user's own, which chooses the last thread.
struct LastBalancer: EventPoolBalancing {
  func chooseThread(for choice: borrowing EventPoolChoice) -> Int { choice.count - 1 }
}

struct Job: Eventable {
  var number = 0
  var key = 0
  var token: Lifetime.Token?
  /// The handler opens `entered` when it begins, and then waits for `leave`.
  var entered: Gate?
  var leave: Gate?
}

struct Handled: Sendable, Equatable {
  var thread: Int
  var number: Int
}

/// A thread of a pool that notes what it handles.
final class JobThread: EventThread, @unchecked Sendable {
  // Constants of Sendable types.
  let index: Int
  let log: Log<Handled>
  let token: Lifetime.Token?
  let body: (@Sendable (JobThread, Job) -> Void)?
  /// Whether the thread registers its callback itself.
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

  /// - Parameter complete: If given, the threads are made without their callback, and the pool's
  ///   closure registers it after it has called this.
  init(
    _ core: EventCentral.Core, _ capacity: Int,
    _ balancer: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    scaler: any EventPoolScaling = FixedScaler(), mailbox: EventMailboxCapacity = .unbounded,
    body: (@Sendable (JobThread, Job) -> Void)? = nil,
    complete: (@Sendable (JobThread) -> Void)? = nil
  ) {
    let central = EventCentral(core: core)
    self.central = central
    let (log, lifetime) = (log, lifetime)
    pool = EventPool(
      capacity: capacity, balancer: balancer, scaler: scaler, mailbox: mailbox, on: central
    ) { index in
      let thread = JobThread(
        index, log, token: lifetime.token(), registers: complete == nil, body: body)
      if let complete {
        complete(thread)
        thread.addEventCallback(JobThread.onJob)
      }
      return thread
    }
  }

  func holdAll() -> [HeldThread] { pool.holdAll() }
}

extension EventPool {
  /// Has every thread of the pool stand in a handler.
  func holdAll() -> [HeldThread] { withThreads { $0.map { HeldThread($0) } } }
}

/// Each core with each balancer, the arguments of most tests of pools.
let balances: [(EventCentral.Core, Balance)] = cores.flatMap { core in
  Balance.allCases.map { (core, $0) }
}
