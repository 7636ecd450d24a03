// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Tracing
  public import EventCore
  public import Tracing

  /// An event that a sequence has handed out, and the context in which it was dispatched.
  public struct TracedEvent<Event: Eventable>: Sendable {
    /// The event.
    public let event: Event
    /// The context of whoever dispatched it; nil if there was none.
    public let context: ServiceContext?

    /// Runs a closure in that context.
    public func withContext<Result, Failure>(
      isolation: isolated (any Actor)? = #isolation, _ body: (Event) async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
      do {
        return try await ServiceContext.$current.withValue(context) { try await body(event) }
      } catch {
        throw error as! Failure
      }
    }
  }

  /// The events of a sequence with the contexts in which they were dispatched, which `EventSequence.traced` makes. A
  /// loop has the context of its own task: Swift lets no iterator change that.
  public struct TracedEventSequence<Event: Eventable>: AsyncSequence, Sendable {
    let base: EventSequence<Event>

    /// As that of the sequence.
    public func makeAsyncIterator() -> Iterator { Iterator(base: base.makeAsyncIterator()) }

    /// Takes the events, one by one.
    public struct Iterator: AsyncIteratorProtocol {
      var base: EventSequence<Event>.Iterator

      /// As that of the sequence.
      public mutating func next(
        isolation actor: isolated (any Actor)? = #isolation
      ) async -> TracedEvent<Event>? {
        guard let event = await base.next(isolation: actor) else { return nil }
        return TracedEvent(event: event, context: base.takeCarried().value)
      }

      /// As that of the sequence.
      public mutating func next() async -> TracedEvent<Event>? { await next(isolation: nil) }
    }
  }

  extension EventSequence {
    /// The same events, each with the context in which it was dispatched.
    ///
    /// ```swift
    /// for await order in OrderPlaced.events(on: world).traced {
    ///   try await order.withContext { order in try await ledger.book(order) }
    /// }
    /// ```
    public var traced: TracedEventSequence<Event> { TracedEventSequence(base: self) }
  }
#endif
