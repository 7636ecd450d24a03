// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What happens when a handler throws: an event of its own, dispatched on the central of the handler, which goes on
/// with the next event. What a handler of `EventFailure` throws itself is dropped, since that handler would get it
/// again, without end: such a handler deals with its own errors.
///
/// An answer to a request is one, too, if nobody waits for it when it comes
/// (``EventCentral/request(_:expecting:within:priority:isolation:)``). If it is a resource, this is where it is freed. That
/// of an answerer whom another was faster than is no mistake of anybody's, and a log need not have it
/// (``EventWaitError/answeredByAnother``):
///
/// ```swift
/// EventFailure.addListener(nil, executeOn: .listenerThread, on: world) { failure in
///   if let file = failure.lateAnswer as? OpenFile { file.close() }
/// }
/// ```
///
/// ```swift
/// EventFailure.addListener(nil, executeOn: .listenerThread, on: world) { failure in log(failure) }
/// for await failure in world.failures { print(failure) }
/// ```
///
/// **Trap**: a drain of the central ends these two at its beginning, so that what fails during the drain goes unseen.
/// To see that, listen `on:` an ``EventListener`` of your own, and drain it after the central: <doc:ShuttingDown>.
public struct EventFailure: Eventable, CustomStringConvertible {
  /// The type of the event that was handled.
  public let eventType: any Eventable.Type
  /// Whose handler it was.
  public let receiver: any EventListenerHandling
  /// What the handler threw; for an answer ``EventWaitError/late``, or ``EventWaitError/answeredByAnother`` if the
  /// requester has got the answer of another.
  public let error: any Error
  /// The answer that nobody waited for; nil if the handler threw.
  public let lateAnswer: (any Sendable)?

  init(
    eventType: any Eventable.Type, receiver: any EventListenerHandling, error: any Error,
    lateAnswer: (any Sendable)? = nil
  ) {
    self.eventType = eventType
    self.receiver = receiver
    self.error = error
    self.lateAnswer = lateAnswer
  }

  /// A sentence for a log.
  public var description: String {
    lateAnswer == nil ? "A handler of \(eventType) threw: \(error)" : "An answer to \(eventType): \(error)"
  }
}

extension EventCentral {
  /// The errors that handlers throw from now on, and the answers that come too late, as a sequence of its own for each
  /// use.
  ///
  /// **Trap**: it gets nothing more when ``drain(until:)`` begins. `EventFailure.events(on:)` of an ``EventListener``
  /// of your own, which is drained later, also has what fails during the drain.
  public var failures: EventSequence<EventFailure> { EventFailure.events(on: self) }
}
