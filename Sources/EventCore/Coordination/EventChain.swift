// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One event on its way up.
@usableFromInline
struct Emission {
  /// The type of the event.
  let key: ObjectIdentifier
  /// The event for typed interceptors. Valid during the call of `emit`.
  let payload: UnsafeRawPointer
  /// The event for all others.
  let event: any CoordinateEvents

  @usableFromInline
  init(key: ObjectIdentifier, payload: UnsafeRawPointer, event: any CoordinateEvents) {
    self.key = key
    self.payload = payload
    self.event = event
  }
}

extension UICoordinated {
  /// The link for the chain, which is on no actor.
  nonisolated fileprivate var coordinatorOnMain: EventCoordinator? {
    requireMainActor(Self.self, was: "reached by an event")
    // As in `UICoordinator.onMain`.
    nonisolated(unsafe) let this = self
    nonisolated(unsafe) var coordinator: EventCoordinator?
    MainActor.assumeIsolated { coordinator = this.parentCoordinator }
    return coordinator
  }
}

extension EventPath {
  /// Goes up from a responder, and appends everybody who is to be asked.
  ///
  /// Each link is read only once, since reading a weak reference costs 25 ns, more than anything else here.
  ///
  /// - Returns: The top coordinator, if the chain leads to one.
  mutating func climb(
    from origin: any EventResponder, includingEmitter: Bool
  ) -> EventCoordinator? {
    var check = CircleCheck(from: origin)
    // The last class that was found to be no waypoint. The cast that finds out costs 20 ns, and neighbours
    // often have the same class.
    var plain: ObjectIdentifier?
    var current = origin
    var isAsked = includingEmitter
    while true {
      let type = ObjectIdentifier(type(of: current))
      if type != plain {
        switch pass(current, isAsked: isAsked) {
        case .plain: plain = type
        case .responder: break
        case .coordinator(let top): return top
        }
      }
      guard let next = current.nextResponder else { return nil }
      check.step(to: next)
      current = next
      isAsked = true
    }
  }

  /// What a responder on the chain is.
  private enum Link {
    /// No waypoint, like all objects of its class.
    case plain
    /// A waypoint that leads to its next responder.
    case responder
    /// A coordinator, or a waypoint that leads to one, with the top coordinator.
    case coordinator(EventCoordinator)
  }

  /// Appends a responder that is to be asked, and the coordinators above it if it leads to them.
  @inline(never)
  private mutating func pass(_ responder: any EventResponder, isAsked: Bool) -> Link {
    if let coordinator = responder as? EventCoordinator {
      if isAsked { append(.coordinator(coordinator)) }
      return .coordinator(climb(from: coordinator))
    }
    guard let waypoint = responder as? any EventWaypoint else { return .plain }
    if isAsked, let interceptor = waypoint as? any EventIntercepting {
      append(.responder(interceptor))
    }
    guard let coordinator = waypoint.coordinatorAbove else { return .responder }
    append(.coordinator(coordinator))
    return .coordinator(climb(from: coordinator))
  }

  /// Goes on from coordinator to coordinator, which lead to a top always (`addChild(_:)`).
  private mutating func climb(from coordinator: EventCoordinator) -> EventCoordinator {
    var current = coordinator
    while let parent = current.parentCoordinator {
      append(.coordinator(parent))
      current = parent
    }
    return current
  }
}

extension EventWaypoint {
  /// The coordinator that shows this, if it is shown by one.
  fileprivate var coordinatorAbove: EventCoordinator? {
    if let coordinated = self as? any Coordinated { return coordinated.parentCoordinator }
    return (self as? any UICoordinated)?.coordinatorOnMain
  }
}

/// Sends an event up the chain of a responder. It finds everybody first, and asks them then, so that a
/// circle is found before any interceptor runs, and interceptors may take the hierarchy apart.
@usableFromInline
func emit(
  _ emission: Emission, from origin: any EventResponder, includingEmitter: Bool
) -> EventEmission {
  withUnsafeTemporaryAllocation(of: EventPath.Stop.self, capacity: EventPath.countOnStack) {
    memory in
    var path = EventPath(in: memory)
    let top = path.climb(from: origin, includingEmitter: includingEmitter)
    if path.offer(emission) == .handled { return .handled }
    return top?.offerUnhandled(emission.event) == .handled ? .handled : .unhandled
  }
}

/// Finds circles in a chain in constant memory (Brent 1980: the mark moves up at every power of two, so
/// that a circle comes back to it).
struct CircleCheck {
  /// Retained, since another object could get its address.
  private var mark: any EventResponder
  private var steps = 0
  /// Most chains are shorter, and never move the mark.
  private var limit = 64

  init(from origin: any EventResponder) {
    mark = origin
  }

  @inline(__always)
  mutating func step(to next: any EventResponder) {
    steps += 1
    if steps == limit || next === mark { stop(at: next) }
  }

  /// Out of line, since code that copies `next` would make the loop copy it each time.
  @inline(never)
  private mutating func stop(at next: any EventResponder) {
    require(
      next !== mark,
      """
      A chain of responders ends at the top; this one leads from one of type \(type(of: next)) \
      back to itself, in \(steps) \(steps == 1 ? "step" : "steps"): have the nextResponder of the \
      top return nil.
      """)
    mark = next
    steps = 0
    limit *= 2
  }
}
