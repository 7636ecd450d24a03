// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A ``Coordinator`` on the MainActor, for user interfaces in Swift 6 mode.
///
/// ```swift
/// final class ShopCoordinator: UICoordinator {
///   override func start() {
///     super.start()
///     window.rootViewController = shopViewController
///   }
/// }
/// ```
@MainActor
@preconcurrency
open class UICoordinator: EventCoordinator {
  /// What the coordinator shows. As ``Coordinator/rootResponder``.
  public final var rootResponder: (any UICoordinated)? {
    get { root }
    set {
      linkRoot(false)
      // What was shown ends after the access to `root`: its `deinit` may emit, and come back here.
      var old = newValue
      swap(&root, &old)
      if state != .stopped { linkRoot(true) }
      withExtendedLifetime(old) {}
    }
  }
  private final var root: (any UICoordinated)?

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootResponder: What it shows.
  public init(rootResponder: (any UICoordinated)? = nil) {
    root = rootResponder
    super.init()
    linkRoot(true)
  }

  /// Starts the coordinator. As ``Coordinator/start()``.
  open func start() { begin() }

  /// Stops the coordinator and those below. As ``Coordinator/stop()``.
  open func stop() { end() }

  /// Makes the events of what it shows come here again. As ``Coordinator/activate()``.
  open func activate() {
    if state != .stopped { linkRoot(true) }
  }

  /// Called for each event from below; returns true to stop it. As ``Coordinator/interceptEvent(_:)``.
  open func interceptEvent(_ event: CoordinateEvents) -> Bool { false }

  /// Called for each event from below; returns whether it goes on. As
  /// ``Coordinator/intercept(_:)-(CoordinateEvents)``.
  open func intercept(_ event: any CoordinateEvents) -> EventInterception {
    interceptEvent(event) ? .handled : .pass
  }

  // The base class is on no actor, so its calls are checked at run time.

  nonisolated override final func performStart() { onMain("started") { $0.start() } }
  nonisolated override final func performStop() { onMain("stopped") { $0.stop() } }

  nonisolated override final func performIntercept(
    _ event: any CoordinateEvents
  ) -> EventInterception {
    onMain("reached by an event") { $0.intercept(event) }
  }

  nonisolated override final func linkRoot(_ isLinked: Bool) {
    onMain(isLinked ? "made" : "stopped") { this in
      guard let rootResponder = this.rootResponder else { return }
      if isLinked {
        rootResponder.parentCoordinator = this
      } else if rootResponder.parentCoordinator === this {
        rootResponder.parentCoordinator = nil
      }
    }
  }

  nonisolated private func onMain<Result: Sendable>(
    _ deed: String, _ body: @MainActor (UICoordinator) -> Result
  ) -> Result {
    requireMainActor(Self.self, was: deed)
    nonisolated(unsafe) let this = self
    // `assumeIsolated` runs the body on the calling thread before it returns, so `this` is not sent.
    return MainActor.assumeIsolated { body(this) }
  }
}

/// Checks at run time that the caller is on the MainActor, in place of the compiler. `preconditionIsolated`
/// prints its message as garbage on Linux (Swift 6.3.1).
func requireMainActor(_ type: Any.Type, was deed: String) {
  require(
    MainActor.isCurrent,
    """
    A \(type) is used on the MainActor, and one was \(deed) elsewhere: do that on the MainActor. An event \
    from elsewhere can be dispatched, and emitEvents(of:from:) brings it there.
    """)
}
