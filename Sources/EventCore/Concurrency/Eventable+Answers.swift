// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Eventable {
  /// Answers queries of this type with a closure that returns
  /// (``EventCentral/request(_:expecting:within:priority:isolation:)``).
  ///
  /// ```swift
  /// PriceQuery.answer(on: world) { query in Price(cents: prices[query.id]) }
  /// ```
  ///
  /// - Parameters:
  ///   - executeOn: Where the closure is called.
  ///   - source: Where the queries are dispatched (``EventListenable``). A pool does not answer by its threads, but on
  ///     its one listener thread; for several answers at once see the `async` form.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  ///   - body: Returns the answer, or throws: the error goes to the requester.
  /// - Returns: The handle that ends it. It stays if the handle is released.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Order**: queries are events among the others of that place (D1 to D3).
  @inlinable
  @discardableResult
  public static func answer<Answer: Sendable>(
    executeOn: ExecuteEventOn = .listenerThread, on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation,
    with body: @escaping @Sendable (_ query: Self) throws -> Answer
  ) -> any EventListenerHandling {
    source.listener.add(nil, executeOn, isolation, isOnce: false, eventTypeActions(EventRequest<Self, Answer>.self)) {
      answerer in
      answerer.handler(
        HandlerCallback<EventRequest<Self, Answer>> { request in
          request.ticket.give(Result { try body(request.query) }, by: answerer)
        }, HandlerInterest(.all, maximumAge: 0, customFilter: nil))
    }
  }

  /// Answers queries of this type with an `async` closure, in tasks of its own. All else is as for the closure that
  /// returns.
  ///
  /// - Parameters:
  ///   - source: Where the queries are dispatched (``EventListenable``).
  ///   - concurrency: How many answers may be in the making at the same time.
  ///   - body: Returns the answer, or throws: the error goes to the requester.
  /// - Returns: The handle that ends it. It stays if the handle is released.
  ///
  /// **Threads**: any, also inside a handler. Its tasks keep the priority and the task-local values of the code that
  /// registers it; to keep none, register it in a `Task.detached { }`.
  ///
  /// **Order**: the making of an answer begins when a task is free, with the most urgent query (D1 to D3).
  @discardableResult
  @_disfavoredOverload
  public static func answer<Answer: Sendable>(
    on source: any EventListenable = EventCentral.shared, concurrency: EventConcurrency = .serial,
    with body: @escaping @Sendable (_ query: Self) async throws -> Answer
  ) -> any EventListenerHandling {
    AsyncListener.start(
      EventRequest<Self, Answer>.self, nil, source.listener,
      HandlerInterest(.all, maximumAge: 0, customFilter: nil), concurrency
    ) { request, answerer in
      do {
        request.ticket.give(.success(try await body(request.query)), by: answerer)
      } catch {
        answerer.noteFailure(error)
        request.ticket.give(.failure(error), by: answerer)
      }
    }
  }
}
