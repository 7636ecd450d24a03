// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What listeners of a pump's place are registered `on:`.
final class PumpSource: Sendable {
  let central: EventCentral
  let direct: any RouterCore
  let ownListener = OwnedListener()

  init(_ central: EventCentral, _ direct: any RouterCore) {
    self.central = central
    self.direct = direct
  }
}

extension EventPumpPlace: EventListenable {
  /// The listeners that are registered `on:` this place. They get what is dispatched on the pump's central and what is
  /// sent to the pump alone; with `.listenerThread` they are called inside the pump's runs. They end with the pump.
  ///
  /// **Threads**: any. It is made at its first use. **Ownership**: the place's.
  public var listener: EventListener {
    pumpSource.ownListener.value(or: { [self] in
      EventListener(on: pumpSource.central, direct: pumpSource.direct, of: consumer)
    })
  }

  /// Ends the consumer, and the listeners in other places.
  func end() {
    consumer.close(whenEmpty: false)
    pumpSource.ownListener.end()
  }

  // A pump, which alone makes places, makes each with one.
  private var pumpSource: PumpSource { unsafeDowncast(source, to: PumpSource.self) }
}
