// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A thread that owns its state: handlers get it `inout`, and nothing else can reach it, which the compiler checks in
/// Swift 6 mode. No subclass is needed, and no lock.
///
/// ```swift
/// let physics = EventWorker(on: world, state: Bodies()) { on in
///   on(Hit.self) { bodies, hit in bodies.apply(hit) }
///   on(Spawn.self, interestedIn: .latestOnly) { bodies, spawn in bodies.add(spawn) }
/// }
/// ```
///
/// The thread ends with its last reference, or by ``EventThread/cancel()`` and the drains of ``thread``; the state is
/// freed then.
public final class EventWorker<State>: Sendable {
  /// The thread, to send events to, to look at, and to end.
  public let thread: EventThread

  /// Starts the thread.
  ///
  /// - Parameters:
  ///   - central: Where its events are dispatched.
  ///   - state: What the handlers share. It is sent to the thread: the caller cannot use it afterwards.
  ///   - mailbox: How many events may wait, and what becomes of more.
  ///   - waitStrategy: What the thread does while no event waits.
  ///   - name: What statistics call it, and how debuggers show the thread.
  ///   - register: Registers the handlers. Each gets the events that are dispatched after its registration (D4).
  ///
  /// **Threads**: any.
  public init(
    on central: EventCentral = .shared, state: sending State, mailbox: EventMailboxCapacity = .unbounded,
    waitStrategy: EventWaitStrategy = .park,
    name: String = "EventWorker", _ register: (_ on: Handlers) -> Void
  ) {
    thread = EventThread(on: central, mailbox: mailbox, waitStrategy: waitStrategy, name: name)
    register(Handlers(thread, StateCell(state)))
  }

  /// Registers the handlers of a worker, as if it were a function.
  public struct Handlers {
    @usableFromInline let thread: EventThread
    @usableFromInline let cell: StateCell

    init(_ thread: EventThread, _ cell: StateCell) {
      self.thread = thread
      self.cell = cell
    }

    /// Registers a handler for the events of a type.
    ///
    /// - Parameters:
    ///   - type: The exact type of event.
    ///   - interest: Which events the handler wants; the others are skipped and counted. Not `.custom`, which needs a
    ///     filter: the handler passes over what it does not want.
    ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
    ///   - handler: Gets the state and the event. It runs on the thread, one at a time with all others.
    /// - Returns: A handle that removes the handler.
    ///
    /// **Order**: as for callbacks of an event thread (D1 to D3).
    @inlinable
    @discardableResult
    public func callAsFunction<E: Eventable>(
      _ type: E.Type, interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
      _ handler: @escaping @Sendable (_ state: inout State, _ event: E) -> Void
    ) -> any EventListenerHandling {
      // The closure retains the cell: the state lives as long as a handler.
      let cell = cell
      return thread.addEventCallback(
        { (event: E) in handler(&cell.state.pointee, event) }, interestedIn: interest, maximumAge: maximumAge)
    }

    /// Answers the queries of a type with what the handler returns, or with the error that it throws
    /// (``EventCentral/request(_:expecting:within:priority:isolation:)``).
    ///
    /// ```swift
    /// let hall = EventWorker(on: world, state: Guests()) { on in
    ///   on(Entered.self) { guests, entered in guests.add(entered.name) }
    ///   on.answer(WhoIsHere.self) { guests, query in guests.names(in: query.room) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The exact type of query.
    ///   - handler: Gets the state and the query. It runs on the thread, one at a time with all others.
    /// - Returns: A handle that ends it.
    ///
    /// **Order**: queries are events among the others of the thread (D1 to D3).
    @inlinable
    @discardableResult
    public func answer<Query: Eventable, Answer: Sendable>(
      _ type: Query.Type, _ handler: @escaping @Sendable (_ state: inout State, _ query: Query) throws -> Answer
    ) -> any EventListenerHandling {
      let cell = cell
      return Query.answer(on: thread) { query in try handler(&cell.state.pointee, query) }
    }
  }

  /// The state. The thread's handlers alone use it, one at a time; the last of them frees it.
  @usableFromInline
  final class StateCell: @unchecked Sendable {
    @usableFromInline let state: UnsafeMutablePointer<State>

    init(_ state: consuming sending State) {
      self.state = .allocate(capacity: 1)
      self.state.initialize(to: state)
    }

    deinit {
      state.deinitialize(count: 1)
      state.deallocate()
    }
  }
}

extension EventWorker: EventReceiver {
  /// The name that it was given; `EventWorker` without one.
  public var receiverName: String { thread.receiverName }
  /// Those of ``thread``.
  public var receiverStatistics: EventThreadStatistics { thread.statistics }
  public var mailboxStatistics: EventMailboxStatistics { thread.mailboxStatistics }
}

extension EventWorker: WorkingElsewhere {
  package var elsewhere: WorkElsewhere { thread.elsewhere }
}

extension EventWorker: ActiveByItself {}
