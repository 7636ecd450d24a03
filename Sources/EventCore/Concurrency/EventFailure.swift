// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What happens when a handler throws: an event of its own, dispatched on the central of the handler, which goes on
/// with the next event. What a handler of `EventFailure` throws itself is dropped, since that handler would get it
/// again, without end: such a handler deals with its own errors.
///
/// ```swift
/// EventFailure.addListener(nil, executeOn: .listenerThread, on: world) { failure in log(failure) }
/// for await failure in world.failures { print(failure) }
/// ```
public struct EventFailure: Eventable, CustomStringConvertible {
  /// The type of the event that was handled.
  public let eventType: any Eventable.Type
  /// Whose handler it was.
  public let receiver: any EventListenerHandling
  /// What the handler threw.
  public let error: any Error

  /// A sentence for a log.
  public var description: String { "A handler of \(eventType) threw: \(error)" }
}

extension EventCentral {
  /// The errors that handlers throw from now on, as a sequence of its own for each use.
  public var failures: EventSequence<EventFailure> { EventFailure.events(on: self) }
}
