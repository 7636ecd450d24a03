// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Eventable {
  /// Dispatches this event as ``queue(priority:on:)``, and says what became of it at each receiver.
  ///
  /// - Parameters:
  ///   - priority: Which of the five queues it joins.
  ///   - central: Where its receivers are registered.
  /// - Returns: How many receivers did what with it.
  ///
  /// **Threads**, **Order**: as ``queue(priority:on:)``. **Complexity**: as there, without the short way for a
  /// single receiver: some 10 ns more.
  @inlinable
  public consuming func queueWithOutcome(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> EventDispatchOutcome {
    dispatchWithOutcome(self, lane: Lane(.queue, priority), through: central.router)
  }

  /// Dispatches this event as ``stack(priority:on:)``, and says what became of it at each receiver. All else is as
  /// for ``queueWithOutcome(priority:on:)``.
  @inlinable
  public consuming func stackWithOutcome(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> EventDispatchOutcome {
    dispatchWithOutcome(self, lane: Lane(.stack, priority), through: central.router)
  }

  /// Dispatches this event as ``queue(priority:on:)``, and says what each receiver did with it.
  ///
  /// ```swift
  /// for outcome in Score(points: 3).queueToEach() where outcome.fate == .refused {
  ///   print("\(outcome.receiver) is full")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - priority: Which of the five queues it joins.
  ///   - central: Where its receivers are registered.
  /// - Returns: The receivers, in the order in which they got the event. One with callbacks for every event and
  ///   `.latestOnly` ones is there once for the former, and once for each of the latter.
  ///
  /// **Threads**, **Order**: as ``queue(priority:on:)``. **Complexity**: as there, and for each receiver a mutex and a
  /// look-up of its name.
  @inlinable
  public consuming func queueToEach(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> [EventReceiverOutcome] {
    dispatchToEach(self, lane: Lane(.queue, priority), on: central)
  }

  /// Dispatches this event as ``stack(priority:on:)``, and says what each receiver did with it. All else is as for
  /// ``queueToEach(priority:on:)``.
  @inlinable
  public consuming func stackToEach(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> [EventReceiverOutcome] {
    dispatchToEach(self, lane: Lane(.stack, priority), on: central)
  }
}

/// Dispatches one event, and says what each receiver did with it.
@inlinable
@inline(never)
func dispatchToEach<E: Eventable>(
  _ event: consuming E, lane: Lane, on central: EventCentral
) -> [EventReceiverOutcome] {
  var state = DispatchState()
  return begin(event, lane: lane, through: central.router, &state) ? central.commitToEach(&state) : []
}

extension EventCentral {
  /// The second step of a dispatch, of which the caller wants to know what each receiver did.
  @usableFromInline
  func commitToEach(_ state: inout DispatchState) -> [EventReceiverOutcome] {
    var outcomes: [EventReceiverOutcome] = []
    router.commit(&state) { outcomes.append(EventReceiverOutcome(basis.names[$0], $1)) }
    return outcomes
  }
}
