// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What all coordinators have in common: a parent, children, and interceptors.
///
/// Subclass ``Coordinator``, or ``UICoordinator`` for code of the MainActor; one tree may have both.
///
/// **Ownership**: a coordinator retains its children, and not its parent. Trees of any depth are freed
/// without recursion.
///
/// **Threads**: one at a time. A coordinator has no lock and is not `Sendable`: it belongs to the
/// MainActor, or to the thread or actor that made it, and calls everything there. In Swift 6 mode the
/// compiler checks that.
open class EventCoordinator: EventResponder {
  enum State {
    case made, started, stopping, stopped
  }

  /// The coordinator above, if any.
  public internal(set) final weak var parentCoordinator: EventCoordinator?
  /// The coordinators below, in the order in which they were added.
  public internal(set) final var childCoordinators: [EventCoordinator] = []
  private(set) final var state = State.made
  private final var interceptors: [EventInterceptionHandle] = []
  /// Counts the changes of parents, in all trees, so that `stopDescendants` notices that a tree has
  /// changed. Relaxed, since each tree belongs to one thread.
  static let moves = Atomic<UInt>(0)
  /// How many coordinators are being stopped, in all trees. Relaxed, as `moves`.
  static let stops = Atomic<Int>(0)

  /// Called for events that no interceptor stopped, while this is the top coordinator: one without a
  /// ``parentCoordinator``.
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
    // One after the other: a long chain that freed itself link by link would overflow the stack.
    var pending = childCoordinators
    childCoordinators = []
    while var child = pending.popLast() {
      guard isKnownUniquelyReferenced(&child) else { continue }
      pending += child.childCoordinators
      child.childCoordinators = []
    }
  }

  /// The parent coordinator.
  public final var nextResponder: (any EventResponder)? { parentCoordinator }

  /// Whether the coordinator was started, and not stopped since.
  public final var isStarted: Bool { state == .started }

  // MARK: Overridden by `Coordinator` and `UICoordinator`

  func performStart() {}
  func performStop() {}
  func performIntercept(_ event: any CoordinateEvents) -> EventInterception { .pass }
  /// Links what is shown to this coordinator, or clears a link to it.
  func linkRoot(_ isLinked: Bool) {}

  // MARK: Start and stop

  /// The common part of `start()`.
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

  /// The common part of `stop()`.
  final func end() {
    guard state != .stopping else { return }
    state = .stopping
    Self.stops.wrappingAdd(1, ordering: .relaxed)
    stopDescendants()
    removeFromParent()
    linkRoot(false)
    state = .stopped
    Self.stops.wrappingSubtract(1, ordering: .relaxed)
  }

  /// Stops the coordinators below, from the leaves up and the last child first. Each `stop()` finds its
  /// children gone, so the calls do not nest.
  private func stopDescendants() {
    var current = self
    while true {
      while let last = current.childCoordinators.last {
        current = last
      }
      guard current !== self else { return }
      guard let parent = current.parentCoordinator else {
        // In the `deinit` of this one, the links of its children to it are nil already.
        if childCoordinators.last === current {
          childCoordinators.removeLast()
          current.performStop()
        }
        // Or else an override has removed a coordinator that was on the way up: begin again from the top.
        current = self
        continue
      }
      let moves = Self.moves.load(ordering: .relaxed)
      current.performStop()
      // An override that does not call super has not left its parent.
      if current.parentCoordinator === parent { current.removeFromParent() }
      // Releases it, which may run user code, before `moves` is read.
      current = parent
      // If anything but its own leaving has changed, the parent may be elsewhere: begin from the top.
      let isAlone = Self.moves.load(ordering: .relaxed) == moves &+ 1
      if !isAlone, parent !== self, !parent.isBelow(self) { current = self }
    }
  }

  // MARK: Interceptors

  /// Asks the interceptors for the type, then the override. Passes if the coordinator was stopped.
  final func offer(_ emission: Emission) -> EventInterception {
    if !interceptors.isEmpty {
      // The loop runs over a copy: interceptors that are added meanwhile begin with the next event.
      for interceptor in interceptors where interceptor.key == emission.key {
        guard state != .stopped else { return .pass }
        if let body = interceptor.body, body(emission.payload) == .handled { return .handled }
      }
    }
    return state == .stopped ? .pass : performIntercept(emission.event)
  }

  /// Asks `unhandledEvents`, for the top coordinator.
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
