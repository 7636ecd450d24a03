// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The events of a type as an asynchronous sequence, which ``Eventable/events(on:buffering:interestedIn:maximumAge:customFilter:)``
/// makes.
///
/// ```swift
/// for await score in Score.events(on: world) {
///   board.show(score)
/// }
/// ```
///
/// Each sequence is a receiver of its own, with a mailbox of its own: any number of them get every event. It is
/// registered when it is made, so that nothing is lost before the loop begins. An event costs no task, and no
/// lock during a backlog: only the wait for the next event takes a mutex.
///
/// It ends when its task is cancelled, when its source ends, by ``end()``, or when nobody refers to it or to its
/// iterators any more; what waits then is freed and counted (D10). If the task is inside its loop at that moment, what
/// waits is freed when the loop takes its next step.
///
/// A task that is cancelled ends the sequence for good, at the next step of its loop: a later loop gets nothing, and
/// needs a sequence of its own. Await the task before another loop begins.
///
/// **Threads**: any task may iterate, one at a time. **Order**: each step of the loop takes the most urgent event that
/// waits (D1 to D3).
public struct EventSequence<Event: Eventable>: AsyncSequence, Sendable {
  public typealias Element = Event
  public typealias Failure = Never

  @usableFromInline let mailbox: TypedSequenceMailbox<Event>

  @inlinable
  init(_ mailbox: TypedSequenceMailbox<Event>) {
    self.mailbox = mailbox
  }

  /// Makes an iterator, which a loop does.
  ///
  /// **Threads**: one iterator at a time, used by one task at a time; a second one traps, and so do two tasks that wait
  /// with copies of one. What an iterator leaves waits for the next one. Of a sequence that has ended, any number may
  /// be made: they return nil.
  @inlinable
  public func makeAsyncIterator() -> Iterator { Iterator(mailbox) }

  /// Takes the events of a sequence, one by one.
  public struct Iterator: AsyncIteratorProtocol {
    @usableFromInline let mailbox: TypedSequenceMailbox<Event>
    /// Nil if the sequence had ended.
    @usableFromInline let lease: SequenceMailbox.Lease?

    @inlinable
    init(_ mailbox: TypedSequenceMailbox<Event>) {
      self.mailbox = mailbox
      lease = mailbox.lease()
    }

    /// For EventCoreTracing: what the central has carried with the event that was taken last. Once for each event.
    package func takeCarried() -> (any EventCarrier.Value)? { mailbox.takeCarried() }

    /// Takes the next event, and waits for one if none is there.
    ///
    /// - Parameter actor: Leave it out. The call stays on the caller's actor.
    /// - Returns: The event; nil once the sequence has ended.
    ///
    /// **Order**: the most urgent event that waits at this moment (D1 to D3).
    ///
    /// **Complexity**: O(1). It suspends the task only if nothing waits.
    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Event? {
      guard lease != nil else { return nil }
      while !Task.isCancelled {
        switch mailbox.take() {
        case .event(let event): return event
        case .skippedMany: await Task.yield()
        case .nothing: guard await mailbox.wait() else { return nil }
        }
      }
      mailbox.end()
      // Frees what waits, though no step may follow.
      mailbox.rest()
      return nil
    }

    /// As ``next(isolation:)``.
    @inlinable
    public mutating func next() async -> Event? {
      await next(isolation: nil)
    }
  }

  /// Ends the sequence: its iterators return nil from now on.
  ///
  /// **Threads**: any.
  public func end() { mailbox.end() }

  /// How many events wait.
  ///
  /// **Threads**: any. A momentary figure while events are dispatched or taken.
  public var waitingEventCount: Int { mailbox.waitingCount }

  /// How many events were lost, since the task did not take them in time: the bound of the sequence's buffering or of
  /// its source refused or dropped them, or with ``EventBuffering/latest`` newer ones replaced them. What the interest
  /// skips is counted by ``skippedCount``, and what waits by ``waitingEventCount``.
  ///
  /// **Threads**: any. A momentary figure while events are dispatched or taken.
  public var lag: UInt64 { mailbox.lostCount }

  /// How many events the interest has skipped, as ``EventListenerHandling/skippedCount``.
  ///
  /// **Threads**: any. A momentary figure while events are dispatched or taken.
  public var skippedCount: UInt64 { mailbox.skippedCount }
}
