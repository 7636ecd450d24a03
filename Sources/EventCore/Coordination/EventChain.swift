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

/// Somebody on the chain who is asked.
private enum Stop {
  case coordinator(EventCoordinator)
  case responder(any EventIntercepting)

  func offer(_ emission: Emission) -> EventInterception {
    switch self {
    case .coordinator(let coordinator): coordinator.offer(emission)
    case .responder(let responder): responder.intercept(emission.event)
    }
  }
}

/// Goes up a chain, link by link, and notices one that leads back (Brent 1980: the mark moves up at
/// every power of two, so that a circle comes back to it, in constant memory).
private struct Climb {
  private(set) var current: any EventResponder
  private var mark: any EventResponder
  private var steps = 0
  private var limit = 1
  /// A class whose objects are views and no more: the last one that was seen. A look at a class
  /// costs 20 ns, and neighbours are often alike.
  private var plain: ObjectIdentifier?

  init(from origin: any EventResponder) {
    current = origin
    mark = origin
  }

  /// What the current link is.
  enum Link {
    case plain
    case waypoint(any EventWaypoint)
    case coordinator(EventCoordinator)

    /// Whether it is asked.
    var stop: Stop? {
      switch self {
      case .plain: nil
      case .waypoint(let waypoint): (waypoint as? any EventIntercepting).map(Stop.responder)
      case .coordinator(let coordinator): .coordinator(coordinator)
      }
    }
  }

  mutating func link() -> Link {
    let type = ObjectIdentifier(type(of: current))
    if type == plain { return .plain }
    if let coordinator = current as? EventCoordinator { return .coordinator(coordinator) }
    if let waypoint = current as? any EventWaypoint { return .waypoint(waypoint) }
    plain = type
    return .plain
  }

  /// Goes on to the next link. False at the top.
  ///
  /// - Parameter link: What the current one is.
  mutating func advance(from link: Link) -> Bool {
    guard let next = next(after: link) else { return false }
    steps += 1
    require(
      next !== mark,
      """
      A chain of responders ends at the top; this one leads from one of type \(type(of: next)) \
      back to itself, in \(steps) \(steps == 1 ? "step" : "steps"): the nextResponder of the top is nil.
      """)
    if steps == limit {
      mark = next
      steps = 0
      limit *= 2
    }
    current = next
    return true
  }

  private func next(after link: Link) -> (any EventResponder)? {
    switch link {
    case .coordinator(let coordinator): return coordinator.parentCoordinator
    case .plain: return current.nextResponder
    case .waypoint(let waypoint):
      if let coordinated = waypoint as? any Coordinated {
        if let coordinator = coordinated.parentCoordinator { return coordinator }
      } else if let coordinated = waypoint as? any UICoordinated {
        if let coordinator = coordinated.coordinatorOnMain { return coordinator }
      }
      return current.nextResponder
    }
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

/// The interceptors of a chain, in order: the first in place, on the stack; the others in an array.
private struct Path: ~Copyable {
  static let inPlace = 32

  private let first: UnsafeMutableBufferPointer<Stop>
  private var count = 0
  private var others: [Stop] = []

  /// `first` is uninitialised memory for `inPlace` of them, which outlives this.
  init(in first: UnsafeMutableBufferPointer<Stop>) {
    self.first = first
  }

  deinit {
    first[..<count].deinitialize()
  }

  mutating func append(_ stop: Stop) {
    guard count == Path.inPlace else {
      first.initializeElement(at: count, to: stop)
      count += 1
      return
    }
    others.append(stop)
  }

  /// Asks one after the other until somebody stops the event.
  borrowing func offer(_ emission: Emission) -> EventInterception {
    for index in 0..<count where first[index].offer(emission) == .handled { return .handled }
    for stop in others where stop.offer(emission) == .handled { return .handled }
    return .pass
  }
}

/// Sends an event up the chain of a responder: first finds everybody who is to be asked, and only
/// then runs the first line of theirs, so that a chain that leads back is found before anything
/// happened, and handlers may take the hierarchy apart.
@usableFromInline
func emit(
  _ emission: Emission, from origin: any EventResponder, includingEmitter: Bool
) -> EventEmission {
  withUnsafeTemporaryAllocation(of: Stop.self, capacity: Path.inPlace) { memory in
    var path = Path(in: memory)
    var climb = Climb(from: origin)
    var link = climb.link()
    if includingEmitter, let stop = link.stop { path.append(stop) }
    while climb.advance(from: link) {
      link = climb.link()
      if let stop = link.stop { path.append(stop) }
    }
    if path.offer(emission) == .handled { return .handled }
    // The last of the chain, if it is a coordinator, is the top of the coordinators.
    guard case .coordinator(let top) = link, top.offerUnhandled(emission.event) == .handled else {
      return .unhandled
    }
    return .handled
  }
}
