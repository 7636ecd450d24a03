// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A listener whose handler is `async`: a task that takes events from a sequence's mailbox and awaits the handler.
///
/// D6: each call begins under the lock that `remove()` takes, so that none begins after it.
@usableFromInline
final class AsyncListener: EventListenerHandling, Sendable {
  private struct State {
    var isRemoved = false
    var running = 0
    /// Opened when no call is running.
    var waiters: [Latch] = []
  }
  private let state = Guarded(State())
  private let mailbox: SequenceMailbox
  private let concurrency: EventConcurrency

  /// The listener whose handler the task is running, which must not wait for itself.
  @TaskLocal private static var current: AsyncListener?

  private init(_ mailbox: SequenceMailbox, _ concurrency: EventConcurrency) {
    self.mailbox = mailbox
    self.concurrency = concurrency
  }

  /// Registers the listener and starts its task, which inherits the caller's priority and task-local values.
  @usableFromInline
  static func start<E: Eventable>(
    _ type: E.Type, _ requester: AnyObject?, _ source: EventListener, _ interest: HandlerInterest<E>,
    _ concurrency: EventConcurrency, _ body: @escaping @Sendable (E, AsyncListener) async -> Void
  ) -> AsyncListener {
    let mailbox = TypedSequenceMailbox(source, requester, interest)
    let listener = AsyncListener(mailbox, concurrency)
    Task { await listener.run(mailbox, body) }
    return listener
  }

  private func run<E: Eventable>(
    _ mailbox: TypedSequenceMailbox<E>, _ body: @escaping @Sendable (E, AsyncListener) async -> Void
  ) async {
    let lease = mailbox.lease()
    defer { withExtendedLifetime(lease) {} }
    await withTaskGroup(of: Void.self) { group in
      var free = concurrency.limit
      repeat {
        // An event is taken when its call can begin, so that an urgent one overtakes those that wait (D1).
        while let event = mailbox.take() {
          guard begin() else { continue }
          mailbox.rest()
          if concurrency == .serial {
            await call(body, event)
            continue
          }
          group.addTask { await self.call(body, event) }
          free -= 1
          if free == 0 {
            await group.next()
            free += 1
          }
        }
      } while await mailbox.wait()
    }
  }

  private func call<E: Eventable>(_ body: @Sendable (E, AsyncListener) async -> Void, _ event: E) async {
    await Self.$current.withValue(self) { await body(event, self) }
    let waiters = state.withLock { state -> [Latch] in
      state.running -= 1
      guard state.running == 0 else { return [] }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.open() }
  }

  /// Counts a call that is about to begin. False if the listener has ended.
  private func begin() -> Bool {
    guard mailbox.isActive else { return false }
    return state.withLock { state in
      guard !state.isRemoved else { return false }
      state.running += 1
      return true
    }
  }

  // MARK: The handle

  @usableFromInline var isActive: Bool { !state.withLock { $0.isRemoved } && mailbox.isActive }
  @usableFromInline var executesOn: EventListenerContext { .task }
  @usableFromInline var waitingEventCount: Int { mailbox.waitingCount }
  @usableFromInline var skippedCount: UInt64 { mailbox.skippedCount }

  @usableFromInline
  @discardableResult
  func remove() -> Bool {
    state.withLock { $0.isRemoved = true }
    return mailbox.end()
  }

  @available(*, noasync)
  @usableFromInline
  @discardableResult
  func removeAndWait() -> Bool {
    let isFirst = remove()
    done()?.wait()
    return isFirst
  }

  @usableFromInline
  @discardableResult
  func removed() async -> Bool {
    let isFirst = remove()
    await done()?.opened()
    return isFirst
  }

  /// A latch that opens when no call is running; nil if none is.
  private func done() -> Latch? {
    require(
      Self.current !== self,
      """
      removed() waits until its handler is not running, and was called inside that handler, where it would wait for \
      itself: call remove().
      """)
    return state.withLock { state in
      guard state.running > 0 else { return nil }
      let latch = Latch()
      state.waiters.append(latch)
      return latch
    }
  }
}
