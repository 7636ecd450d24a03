// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One event on its way up: the value itself for typed interceptors, and in its box for the others.
@usableFromInline
struct Emission {
  /// The type of the event.
  let key: ObjectIdentifier
  /// The event. Valid during the call of `emit`.
  let payload: UnsafeRawPointer
  let event: any CoordinateEvents

  @usableFromInline
  init(key: ObjectIdentifier, payload: UnsafeRawPointer, event: any CoordinateEvents) {
    self.key = key
    self.payload = payload
    self.event = event
  }
}

extension UICoordinated {
  /// The link, for the chain, which is on no actor: a check at run time in place of the compiler's.
  nonisolated fileprivate var coordinatorOnMain: EventCoordinator? {
    requireMainActor(Self.self)
    nonisolated(unsafe) let this = self
    nonisolated(unsafe) var coordinator: EventCoordinator?
    // Not sent: `assumeIsolated` runs its closure on the calling thread before it returns.
    MainActor.assumeIsolated { coordinator = this.parentCoordinator }
    return coordinator
  }
}

extension EventPath {
  /// Goes up from a responder, and notes everybody who is to be asked.
  ///
  /// Each link is held once, as it was returned: to hold and let go what is weakly referenced costs
  /// 25 ns, which is most of the way.
  ///
  /// - Returns: The last of the chain, if it is a coordinator: the top of the coordinators.
  mutating func climb(
    from origin: any EventResponder, includingEmitter: Bool
  ) -> EventCoordinator? {
    var check = CircleCheck(from: origin)
    // A class whose objects are views and no more: the last one that was seen. A look at a class
    // costs 20 ns, and neighbours are often alike.
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

  /// What a link was.
  private enum Link {
    /// A view and no more, as all of its class.
    case plain
    /// A responder that leads on to the next one.
    case responder
    /// One that led to coordinators, up to the given top.
    case coordinator(EventCoordinator)
  }

  /// Notes a link, and the coordinators above it, if it leads to them.
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

/// Sends an event up the chain of a responder: first finds everybody who is to be asked, and only
/// then runs the first line of theirs, so that a chain that leads back is found before anything
/// happened, and handlers may take the hierarchy apart.
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

/// Notices a chain that leads back (Brent 1980: the mark moves up at every power of two, so that a
/// circle comes back to it, in constant memory).
struct CircleCheck {
  /// Held, since the address of an object that is gone may be another's.
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

  /// Out of line, since code beside the loop that copies `next` makes the loop copy it, too.
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
