// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a central stands on, for all that is made for it.
struct CentralBasis: Sendable {
  let core: EventCentral.Core
  /// Nil for the system's clock.
  let clock: CentralClock?
  /// Whether scheduled events are dispatched inside the runs of pumps, and not by a thread or the clock.
  let timersInPumps: Bool
  let sticky = StickyEvents()
  let names = ReceiverNames()
  /// What travels with the events; nil for nothing.
  let carrier: EventCarrier?
  /// What observes it.
  let instruments: Instruments

  /// - Parameter source: The receiver whose handler runs on the calling thread.
  init(
    core: EventCentral.Core, clock: CentralClock? = nil, timersInPumps: Bool = false, carrier: EventCarrier? = nil,
    source: @escaping @Sendable () -> Unmanaged<ConsumerProbe>? = { nil }
  ) {
    instruments = Instruments(clock, source: source) { core.forgetTallies() }
    self.carrier = carrier
    self.core = core
    self.clock = clock
    self.timersInPumps = timersInPumps
  }

  /// Nanoseconds on the scale of the central's deadlines.
  var now: UInt64 { clock?.now ?? monotonicNanoseconds() }

  func makeRouter() -> any RouterCore {
    let router = core.parts.makeRouter(clock)
    guard let carrier else { return router }
    return CarryingRouter(router, carrier)
  }
}
