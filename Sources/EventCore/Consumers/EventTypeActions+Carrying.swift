// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventTypeActions {
  /// The same actions for payloads that have the value of a carrier behind the event.
  ///
  /// What runs for an event runs with the value: handlers, and the filter of a sequence.
  ///
  /// - Parameter taken: Where the value goes, too, for consumers from which a task takes its events; nil for those that
  ///   run handlers.
  func carrying(_ carrier: EventCarrier, into taken: TakenValue?) -> EventTypeActions {
    let layout = CarriedLayout(behind: size)
    let (deliverDirectly, dropEvent) = (deliverDirectly, drop)
    let type = handledType
    let drop: @Sendable (UnsafeMutableRawPointer) -> Void = { payload in
      dropEvent?(payload)
      layout.drop(in: payload)
    }
    /// Delivers one event. Returns whether it was moved out; then the value is released, too.
    let deliver: @Sendable (Receiver, UnsafeMutableRawPointer, UnsafeRawPointer, Bool) -> Bool = {
      receiver, payload, envelope, owned in
      let value = layout.value(in: payload)
      var isMoved = false
      taken?.value = value
      carrier.restore(value, taken == nil ? type : nil) {
        isMoved = deliverDirectly(receiver, payload, envelope, owned, nil)
      }
      if isMoved { layout.drop(in: payload) }
      return isMoved
    }
    return EventTypeActions(
      key: key, size: size, deliver: self.deliver,
      deliverDirectly: { receiver, payload, envelope, owned, batch in
        guard let batch else { return deliver(receiver, payload, envelope, owned) }
        batch.forEach(from: payload) { if !deliver(receiver, $0, envelope, true) { drop($0) } }
        return true
      }, drop: drop)
  }

  /// The type of the events; nil for the consumer's own jobs.
  private var handledType: (any Eventable.Type)? {
    guard key != eventKey(ConsumerJob.self) else { return nil }
    // A key is the address of the type's metadata.
    return unsafeBitCast(key, to: Any.Type.self) as? any Eventable.Type
  }
}

extension Consumer {
  /// Runs what there is for an event, handlers or a sequence's filter, with what the central carried with it.
  func run<E: Eventable>(
    with carried: (any EventCarrier.Value)?, _ type: E.Type, _ body: () -> Void
  ) {
    guard let carrier = basis.carrier else { return body() }
    hooks.taken?.value = carried
    carrier.restore(carried, hooks.taken == nil ? type : nil, body)
  }
}
