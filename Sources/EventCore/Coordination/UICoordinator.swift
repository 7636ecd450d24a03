// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A ``Coordinator`` on the MainActor, for user interfaces in Swift 6 mode: its overrides may
/// touch what the MainActor guards.
///
/// ```swift
/// final class ShopCoordinator: UICoordinator {
///   override func start() {
///     super.start()
///     window.rootViewController = shopViewController
///   }
/// }
/// ```
///
/// Everything else is as there.
@MainActor
@preconcurrency
open class UICoordinator: EventCoordinator {
  /// What it shows. As ``Coordinator/rootResponder``.
  public final var rootResponder: (any UICoordinated)? {
    willSet { linkRoot(false) }
    didSet { if state != .stopped { linkRoot(true) } }
  }

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootResponder: What it shows.
  public init(rootResponder: (any UICoordinated)? = nil) {
    self.rootResponder = rootResponder
    super.init()
    linkRoot(true)
  }

  /// Begins its work. As ``Coordinator/start()``.
  open func start() { begin() }

  /// Ends its work. As ``Coordinator/stop()``.
  open func stop() { end() }

  /// Looks at an event that came up from below; returns true to stop it. As
  /// ``Coordinator/interceptEvent(_:)``.
  open func interceptEvent(_ event: CoordinateEvents) -> Bool { false }

  /// Looks at an event that came up from below, and says whether it goes on. As
  /// ``Coordinator/intercept(_:)-(CoordinateEvents)``.
  open func intercept(_ event: any CoordinateEvents) -> EventInterception {
    interceptEvent(event) ? .handled : .pass
  }

  // The base class is on no actor: what it calls arrives here by way of a check at run time.
  // `self` does not leave the thread, so that nothing is sent.

  nonisolated override final func performStart() {
    nonisolated(unsafe) let this = self
    MainActor.assumeIsolated { this.start() }
  }

  nonisolated override final func performStop() {
    nonisolated(unsafe) let this = self
    MainActor.assumeIsolated { this.stop() }
  }

  nonisolated override final func performIntercept(
    _ event: any CoordinateEvents
  ) -> EventInterception {
    nonisolated(unsafe) let this = self
    return MainActor.assumeIsolated { this.intercept(event) }
  }

  nonisolated override final func linkRoot(_ isLinked: Bool) {
    nonisolated(unsafe) let this = self
    MainActor.assumeIsolated {
      guard let rootResponder = this.rootResponder else { return }
      if isLinked {
        rootResponder.parentCoordinator = this
      } else if rootResponder.parentCoordinator === this {
        rootResponder.parentCoordinator = nil
      }
    }
  }
}
