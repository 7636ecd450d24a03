// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What all coordinators have in common: a position among parents and children, and interceptors.
///
/// Subclass ``Coordinator``, or ``UICoordinator`` for code of the MainActor; a tree may hold both.
///
/// A parent holds its children, a child its parent weakly: the tree lives as long as somebody
/// holds its top, and goes with it. Trees of any depth are freed without recursion.
///
/// **Threads**: one at a time. A coordinator has no lock and is not `Sendable`: it belongs to the
/// MainActor, or to the thread or actor that made it, and everything it calls runs there. The
/// compiler checks it in Swift 6 mode.
open class EventCoordinator: EventResponder {
  enum State {
    case made, started, stopping, stopped
  }

  /// The coordinator above, if any.
  public internal(set) final weak var parentCoordinator: EventCoordinator?
  /// The coordinators below, in the order in which they came.
  public internal(set) final var childCoordinators: [EventCoordinator] = []
  private(set) final var state = State.made
  private final var interceptors: [EventInterceptionHandle] = []
  /// How often a parent has changed, in all trees: whoever goes over one notices by it that
  /// somebody else may have changed that. Relaxed: a tree is one thread's.
  static let moves = Atomic<UInt>(0)

  /// What is asked last about an event that nobody stopped on its way to this coordinator, as long
  /// as this is the top: ``parentCoordinator`` is nil.
  ///
  /// ```swift
  /// app.unhandledEvents = { event in
  ///   log.append("nobody wanted \(event)")
  ///   return .pass
  /// }
  /// ```
  public final var unhandledEvents: ((_ event: any CoordinateEvents) -> EventInterception)?

  init() {}

  deinit {
    // One after the other, since a chain that frees itself link by link needs a stack as deep.
    var pending = childCoordinators
    childCoordinators = []
    while var child = pending.popLast() {
      guard isKnownUniquelyReferenced(&child) else { continue }
      pending += child.childCoordinators
      child.childCoordinators = []
    }
  }

  /// The parent coordinator: the next on the way of an event.
  public final var nextResponder: (any EventResponder)? { parentCoordinator }

  /// Whether it was started, and not stopped since.
  public final var isStarted: Bool { state == .started }

  // MARK: Of the subclasses

  func performStart() {}
  func performStop() {}
  func performIntercept(_ event: any CoordinateEvents) -> EventInterception { .pass }
  /// Sets the link of what it shows, or clears it if it leads here.
  func linkRoot(_ isLinked: Bool) {}

  // MARK: Start and stop

  /// The part of `start()` that all have in common.
  final func begin() {
    require(
      state == .made || state == .stopped,
      """
      A coordinator is started once, until it is stopped; start() was called on \
      one of type \(type(of: self)) that is \(state): call stop() first, or look at isStarted.
      """)
    state = .started
    linkRoot(true)
  }

  /// The part of `stop()` that all have in common. Twice does no harm.
  final func end() {
    guard state != .stopping else { return }
    state = .stopping
    stopDescendants()
    removeFromParent()
    linkRoot(false)
    state = .stopped
  }

  /// From the leaves up, the last child first; each `stop()` finds its children gone, so that
  /// nothing is nested.
  private func stopDescendants() {
    var current = self
    while true {
      while let last = current.childCoordinators.last {
        current = last
      }
      guard current !== self else { return }
      // An override has taken out a coordinator that was on the way up: what is left, from the top.
      guard let parent = current.parentCoordinator else {
        current = self
        continue
      }
      let moves = Self.moves.load(ordering: .relaxed)
      current.performStop()
      // An override that does not call super leaves it where it was.
      if current.parentCoordinator === parent { current.removeFromParent() }
      // Lets go of it, perhaps as the last: user code, and before the look.
      current = parent
      // If its leaving was not all, its parent may be elsewhere by now: then from the top.
      let isAlone = Self.moves.load(ordering: .relaxed) == moves &+ 1
      if !isAlone, parent !== self, !parent.isBelow(self) { current = self }
    }
  }

  // MARK: Interceptors

  /// Asks the interceptors for the type, then the override. Nobody, if the coordinator was stopped.
  final func offer(_ emission: Emission) -> EventInterception {
    if !interceptors.isEmpty {
      // As they are now: an interceptor may add others, which begin with the next event.
      for interceptor in interceptors where interceptor.key == emission.key {
        guard state != .stopped else { return .pass }
        if let body = interceptor.body, body(emission.payload) == .handled { return .handled }
      }
    }
    return state == .stopped ? .pass : performIntercept(emission.event)
  }

  /// The top's last word.
  final func offerUnhandled(_ event: any CoordinateEvents) -> EventInterception {
    guard state != .stopped, let unhandledEvents else { return .pass }
    return unhandledEvents(event)
  }

  @usableFromInline
  final func add(
    _ key: ObjectIdentifier, _ body: @escaping (UnsafeRawPointer) -> EventInterception
  ) -> any EventRegistration {
    let handle = EventInterceptionHandle(key: key, coordinator: self, body: body)
    interceptors.append(handle)
    return handle
  }

  final func forget(_ handle: EventInterceptionHandle) {
    interceptors.removeAll { $0 === handle }
  }
}

extension EventCoordinator: ActiveByItself {}
