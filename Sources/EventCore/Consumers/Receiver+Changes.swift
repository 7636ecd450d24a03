// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What changes a receiver, each time with a generation of its own.
extension Receiver {
  /// Hands a handler over to the consumer. It is called for events from the generation after `last` on;
  /// `last` is at least the receiver's own. Under the registry's lock, before that generation is published.
  func add(_ handler: EventHandler, after last: UInt32) {
    liveCount += 1
    timedCount += handler.state.isTimed ? 1 : 0
    handler.state.begin(at: last + 1, by: consumer._withUnsafeGuaranteedRef { $0.basis.clock })
    begin(after: last) { $0.handlers.append(handler) }
  }

  /// Begins or stops to count the events that are dispatched after `last`, as `add` does for a handler. Under the
  /// registry's lock.
  func observe(_ isObserved: Bool, after last: UInt32) {
    var observed = additions.withLock { $0.observed }
    observed.change(to: isObserved, at: last + 1)
    observe(observed, after: last)
  }

  /// The same with the observations of all receivers that share the generations.
  func observe(_ observed: ObservedGenerations, after last: UInt32) {
    if !observed.isEmpty { _ = probe.value(or: { consumer._withUnsafeGuaranteedRef { $0.probe.makeProbe(key) } }) }
    begin(after: last) { $0.observed = observed }
  }

  /// Raises the generation, by which events that are dispatched from now on can be told from earlier ones. Under the
  /// registry's lock.
  func raise() { begin(after: generation) { _ in } }

  /// Makes `last + 1` the generation, after what comes with it was put among the additions.
  private func begin(after last: UInt32, _ change: (inout Additions) -> Void) {
    require(
      last < Self.lastGeneration,
      """
      An event type can have 2,147,483,646 registrations on one thread or shared pool, those for the same sticky events \
      elsewhere and its observations included, and this one has had them: make a new one.
      """)
    additions.withLock { additions in
      change(&additions)
      additions.generation = last + 1
    }
    // Releasing: pairs with `generation`.
    registered.store(last + 1, ordering: .releasing)
  }
}
