// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Decides what happens next in a part of a program, so that its views need not know: it shows something,
/// starts other coordinators, and intercepts the events that come up from below.
///
/// ```swift
/// final class ShopCoordinator: Coordinator {
///   override func start() {
///     super.start()
///     startChild(TeamsCoordinator(rootResponder: TeamsViewController()))
///   }
///
///   override func interceptEvent(_ event: CoordinateEvents) -> Bool {
///     guard case AppEvents.Teams.setFavorite(let team) = event else { return false }
///     favorites.insert(team)
///     return true
///   }
/// }
/// ```
///
/// Typed interceptors (``EventCoordinator/intercept(_:_:)``) are asked first, then ``intercept(_:)``, which
/// asks ``interceptEvent(_:)`` unless it is overridden.
///
/// **Threads**: one at a time (``EventCoordinator``). Code of the MainActor in Swift 6 mode subclasses
/// ``UICoordinator``.
open class Coordinator: EventCoordinator {
  /// What the coordinator shows: the view controller from which, and from whose views, events come here.
  ///
  /// Setting it links it to this coordinator; ``stop()`` clears the link, and ``start()`` sets it again.
  ///
  /// **Ownership**: retained.
  public final var rootResponder: (any Coordinated)? {
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
  private final var root: (any Coordinated)?

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootResponder: What it shows.
  public init(rootResponder: (any Coordinated)? = nil) {
    root = rootResponder
    super.init()
    linkRoot(true)
  }

  /// Starts the coordinator. Override it to show something and to start children; call super first.
  ///
  /// Starting a coordinator that is started traps. A stopped one can be started again.
  open func start() { begin() }

  /// Stops the coordinators below, from the leaves up, then leaves the parent and clears the link of what
  /// is shown. Afterwards the coordinator intercepts nothing. Stopping twice does no harm. Called again while it runs, by
  /// an event that a child emits as it is stopped, it returns at once, and the coordinator is asked until the first call
  /// ends.
  ///
  /// Override it to take down what ``start()`` put up; call super. Events that an override emits reach the
  /// parents only before it calls super. An event on its way goes on to the coordinators above.
  ///
  /// **Ownership**: the parent releases the coordinator.
  open func stop() { end() }

  /// Makes the events of what the coordinator shows come here again, after another coordinator showed it. Override this to
  /// show it, and call super. After ``stop()`` it does nothing: ``start()`` links it again.
  open func activate() {
    if state != .stopped { linkRoot(true) }
  }

  /// Called for each event from below. Override it, and return true to stop the event, or false to pass it
  /// to the parent. ``intercept(_:)`` returns the same as an enum.
  open func interceptEvent(_ event: CoordinateEvents) -> Bool { false }

  /// Called for each event from below. Returns whether it goes on. Without an override
  /// ``interceptEvent(_:)`` decides.
  open func intercept(_ event: any CoordinateEvents) -> EventInterception {
    interceptEvent(event) ? .handled : .pass
  }

  override final func performStart() { start() }
  override final func performStop() { stop() }

  override final func performIntercept(_ event: any CoordinateEvents) -> EventInterception {
    intercept(event)
  }

  override final func linkRoot(_ isLinked: Bool) {
    guard let rootResponder else { return }
    if isLinked {
      rootResponder.parentCoordinator = self
    } else if rootResponder.parentCoordinator === self {
      rootResponder.parentCoordinator = nil
    }
  }
}

/// A ``Coordinator`` that knows the type of what it shows.
///
/// ```swift
/// final class TeamsCoordinator: TypedCoordinator<TeamsViewController> {
///   override func start() {
///     super.start()
///     rootViewController.show(teams)
///   }
/// }
/// ```
///
/// A program that subclasses a generic `Coordinator<T>` can keep that name by
/// `typealias Coordinator<T: Coordinated> = TypedCoordinator<T>`.
open class TypedCoordinator<Root: Coordinated>: Coordinator {
  /// What the coordinator shows.
  public let rootViewController: Root

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootViewController: What it shows. It is retained.
  public init(rootViewController: Root) {
    self.rootViewController = rootViewController
    super.init(rootResponder: rootViewController)
  }
}
