// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A listener whose handler is `async`: a task that takes events from a sequence's mailbox and awaits the handler.
///
/// D6: each call begins under the lock that `remove()` takes, so that none begins after it.
@usableFromInline
final class AsyncListener: EventListenerHandling, Sendable {
  private struct State {
    var isRemoved = false
    /// Calls that have begun, and not returned.
    var running = 0
    /// Of a concurrent listener: the same, and those that wait to begin, for a thread or in a tracer of the user's.
    var made = 0
    /// The tasks that are inside the handler, which must not wait for it.
    var callers: Set<Int> = []
    /// Opened when no call is running.
    var waiters: [Latch] = []
    /// The listener's task, while as many calls are made as may.
    var sleeper: UnsafeContinuation<Void, Never>?

    /// Whether no call runs, and none begins any more. Drains wait for that, and not for the end of the task: a
    /// deterministic central does not run it.
    var isOver: Bool { isRemoved && running == 0 }
  }
  private let state = Guarded(State())
  private let mailbox: SequenceMailbox
  private let concurrency: EventConcurrency
  /// What drains wait for.
  private let calls: Latch

  private init(_ mailbox: SequenceMailbox, _ concurrency: EventConcurrency, _ calls: Latch) {
    self.mailbox = mailbox
    self.concurrency = concurrency
    self.calls = calls
  }

  /// Registers the listener and starts its task, which inherits the caller's priority and task-local values.
  @usableFromInline
  static func start<E: Eventable>(
    _ type: E.Type, _ requester: AnyObject?, _ source: EventListener, _ interest: HandlerInterest<E>,
    _ concurrency: EventConcurrency, _ body: @escaping @Sendable (E, AsyncListener) async -> Void
  ) -> AsyncListener {
    let calls = source.contexts.willCall()
    let mailbox = TypedSequenceMailbox(source, requester, .unbounded, interest, makesCalls: true)
    let listener = AsyncListener(mailbox, concurrency, calls)
    Task { [weak contexts = source.contexts] in
      await listener.run(mailbox, body)
      contexts?.didEnd(calls)
    }
    return listener
  }

  private func run<E: Eventable>(
    _ mailbox: TypedSequenceMailbox<E>, _ body: @escaping @Sendable (E, AsyncListener) async -> Void
  ) async {
    let lease = mailbox.lease()
    defer { withExtendedLifetime(lease) {} }
    // A discarding group, which keeps nothing of calls that have ended.
    await withDiscardingTaskGroup { group in
      var begun = 0
      let carrier = mailbox.carrier
      // An event is taken when its call can begin, so that an urgent one overtakes those that wait (D1).
      while true {
        switch mailbox.take() {
        case .event(let event):
          let carried = carrier.map { ($0, mailbox.takeCarried()) }
          mailbox.rest()
          if concurrency == .serial {
            await call(body, event, carried)
          } else {
            group.addTask {
              await self.call(body, event, carried)
              self.makeRoom()
            }
            await hasRoom()
          }
          begun += 1
          // A backlog of calls that do not suspend would keep the thread from all other tasks.
          if begun.isMultiple(of: SequenceMailbox.courtesy) { await Task.yield() }
        case .skippedMany:
          await Task.yield()
        case .nothing:
          guard await mailbox.wait() else { return }
        }
      }
    }
  }

  /// `carried`: what the central carries with its events, if it does.
  private func call<E: Eventable>(
    _ body: @Sendable (E, AsyncListener) async -> Void, _ event: E,
    _ carried: (carrier: EventCarrier, value: (any EventCarrier.Value)?)?
  ) async {
    if let carried {
      await carried.carrier.restoreInTask(carried.value, E.self) { await callUnlessEnded(body, event) }
    } else {
      await callUnlessEnded(body, event)
    }
  }

  /// Makes a call, unless the listener has ended since its event was taken.
  private func callUnlessEnded<E: Eventable>(
    _ body: @Sendable (E, AsyncListener) async -> Void, _ event: E
  ) async {
    let task = Self.currentTask
    guard begin(task) else { return }
    await body(event, self)
    let (waiters, isOver) = state.withLock { state -> ([Latch], Bool) in
      if let task { state.callers.remove(task) }
      state.running -= 1
      guard state.running == 0 else { return ([], false) }
      defer { state.waiters = [] }
      return (state.waiters, state.isOver)
    }
    // Before the waiters, who may begin a drain.
    if isOver { calls.open() }
    for waiter in waiters { waiter.open() }
  }

  /// Counts a call as one that begins. False if the listener has ended, or its requester has gone (D9).
  private func begin(_ task: Int?) -> Bool {
    // Outside of the lock, and before the call counts as running: it may release the requester, whose `deinit` may end
    // this listener, and wait for its calls.
    let isWanted = mailbox.isWanted
    return state.withLock { state in
      let begins = isWanted && !state.isRemoved && mailbox.isOpen
      // Locked, so that whoever has ended the listener finds it.
      mailbox.driver.didCall(begins)
      guard begins else { return false }
      if let task { state.callers.insert(task) }
      state.running += 1
      return true
    }
  }

  /// Notes, where the central traces, that a call threw. In that call.
  @usableFromInline
  func noteFailure(_ error: any Error) { mailbox.carrier?.noteFailure(error) }

  /// Counts a call that was made, and waits until one more may be. The call may have ended by now.
  private func hasRoom() async {
    await withUnsafeContinuation { continuation in
      let hasRoom = state.withLock { state in
        state.made += 1
        if state.made < concurrency.limit { return true }
        state.sleeper = continuation
        return false
      }
      if hasRoom { continuation.resume() }
    }
  }

  /// A call that was made has ended, or has not begun.
  private func makeRoom() {
    let sleeper = state.withLock { state in
      state.made -= 1
      defer { state.sleeper = nil }
      return state.sleeper
    }
    sleeper?.resume()
  }

  /// Identifies the task that is running. A task that the handler starts is another one, and may wait for the handler.
  private static var currentTask: Int? { withUnsafeCurrentTask { $0?.hashValue } }

  // MARK: The handle

  @usableFromInline var isActive: Bool {
    !state.withLock { $0.isRemoved } && (mailbox.delivers || mailbox.hasCallsToBegin)
  }
  @usableFromInline var executesOn: EventListenerContext { .task }
  @usableFromInline var waitingEventCount: Int { mailbox.waitingCount }
  @usableFromInline var skippedCount: UInt64 { mailbox.skippedCount }

  @usableFromInline
  @discardableResult
  func remove() -> Bool {
    // First: a drain that waits for the calls takes none for lost that will not begin.
    let isFirst = mailbox.end()
    let isOver = state.withLock { state in
      state.isRemoved = true
      return state.isOver
    }
    if isOver { calls.open() }
    return isFirst
  }

  @available(*, noasync)
  @usableFromInline
  @discardableResult
  func removeAndWait() -> Bool {
    let isFirst = remove()
    let last = done("removeAndWait()")
    // The filter, which runs before a call.
    mailbox.waitUntilTaken()
    last?.wait()
    return isFirst
  }

  @usableFromInline
  @discardableResult
  func removed() async -> Bool {
    let isFirst = remove()
    let last = done("removed()")
    await mailbox.untilTaken()
    await last?.opened()
    return isFirst
  }

  /// A latch that opens when no call is running; nil if none is. After `remove()`.
  private func done(_ name: String) -> Latch? {
    let task = Self.currentTask
    require(
      !state.withLock { state in task.map(state.callers.contains) ?? false },
      """
      \(name) waits until its handler is not running, and was called inside that handler, where it would wait for \
      itself: call remove(), or end() in place of a scope's ended() or endAndWait().
      """)
    let latch: Latch? = state.withLock { state in
      guard state.running > 0 else { return nil }
      let latch = Latch()
      state.waiters.append(latch)
      return latch
    }
    // The last call may have returned, and not have opened them yet: who asks here may begin a drain next.
    if latch == nil { calls.open() }
    return latch
  }
}

extension AsyncListener: CallRegistration {
  /// The filter, too. The lock orders the calls.
  var isCallRunning: Bool { mailbox.isTaking || state.withLock { $0.running > 0 } }
  var consumerToFence: Consumer? { mailbox.consumerToFence }
}
