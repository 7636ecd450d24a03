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
  /// Whether it intercepts: until the end of `stop()`, and again from `start()` on. A second `stop()` does not change it.
  private final var intercepts = true
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
  public final var unhandledEvents: ((_ event: any CoordinateEvents) -> EventInterception)? {
    get { unhandled }
    set {
      // What the closure before held ends after the access to `unhandled`: its `deinit` may emit, and come back here.
      var old = newValue
      swap(&unhandled, &old)
    }
  }
  private final var unhandled: ((_ event: any CoordinateEvents) -> EventInterception)?

  init() {}

  deinit {
    guard !childCoordinators.isEmpty else { return }
    if let outer = PendingCoordinators.current.value, outer.releasing == ObjectIdentifier(self) {
      outer.coordinators += childCoordinators
      return
    }
    let pending = PendingCoordinators()
    swap(&pending.coordinators, &childCoordinators)
    PendingCoordinators.current.with(pending) {
      while let coordinator = pending.coordinators.popLast() {
        // Released after that, at the end of the step.
        withExtendedLifetime(coordinator) { pending.releasing = ObjectIdentifier(coordinator) }
      }
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
    intercepts = true
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
    intercepts = false
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
        guard intercepts else { return .pass }
        if let body = interceptor.body, body(emission.payload) == .handled { return .handled }
      }
    }
    return intercepts ? performIntercept(emission.event) : .pass
  }

  /// Asks `unhandledEvents`, for the top coordinator.
  final func offerUnhandled(_ event: any CoordinateEvents) -> EventInterception {
    guard intercepts, let unhandledEvents else { return .pass }
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
    if let index = interceptors.lastIndex(where: { $0 === handle }) { interceptors.remove(at: index) }
  }
}

extension EventCoordinator: ActiveByItself {}

/// The coordinators that a `deinit` has to release next.
///
/// Each coordinator of a long chain retains the next one. If each released its children in its own `deinit`, the stack
/// would be as deep as the chain. So the first `deinit` releases them in a loop, and one that the loop releases leaves
/// its own children to the loop. It does so in the `deinit` of the base class, after those of its subclasses, which
/// still have the children and may stop them. What a user's `deinit` releases besides has a loop of its own.
private final class PendingCoordinators {
  var coordinators: [EventCoordinator] = []
  /// The one that the loop releases at this moment.
  var releasing: ObjectIdentifier?
  /// That of the innermost loop on this thread.
  static let current = ThreadLocal<PendingCoordinators>()
}
