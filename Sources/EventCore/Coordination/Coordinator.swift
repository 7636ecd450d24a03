// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Decides what happens next in a part of a program, so that its views need not know: it shows
/// something, starts other coordinators, and intercepts the events that come up from below.
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
/// An event can be intercepted in three ways. They are asked in this order, and each may let it
/// pass: typed interceptors (``EventCoordinator/intercept(_:_:)``), then an override of
/// ``intercept(_:)``, which asks ``interceptEvent(_:)`` unless it is overridden.
///
/// **Threads**: one at a time (``EventCoordinator``). Code of the MainActor in Swift 6 mode
/// subclasses ``UICoordinator``, whose overrides are on the MainActor.
open class Coordinator: EventCoordinator {
  /// What it shows: the view controller whose events, and those of everything in it, come here.
  ///
  /// Its link leads here as soon as it is set; ``stop()`` clears the link, and ``start()`` sets it
  /// again.
  ///
  /// **Ownership**: held, until another takes its place.
  public final var rootResponder: (any Coordinated)? {
    willSet { linkRoot(false) }
    didSet { if state != .stopped { linkRoot(true) } }
  }

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootResponder: What it shows.
  public init(rootResponder: (any Coordinated)? = nil) {
    self.rootResponder = rootResponder
    super.init()
    linkRoot(true)
  }

  /// Begins its work. Override it to show something and to start children; call super first.
  ///
  /// To start a coordinator that is started is a mistake, and traps. A stopped one can be started
  /// again.
  open func start() { begin() }

  /// Ends its work: stops everything below, from the leaves up, leaves its parent and clears the
  /// link of what it shows. After the return it intercepts nothing more.
  ///
  /// Override it to take down what ``start()`` put up; call super. Events that it emits itself
  /// reach its parents before super is called, and nobody after. Calling it again does no harm. It
  /// may be called while an event is on its way: that event goes on to those further up.
  ///
  /// **Ownership**: the parent held it. Unless somebody else does, it is freed when the caller
  /// is done.
  open func stop() { end() }

  /// Looks at an event that came up from below; returns true to stop it.
  ///
  /// Override it and react to the events that you want. `true` ends the way of the event, `false`
  /// sends it on to the parent. ``intercept(_:)`` says the same in words.
  open func interceptEvent(_ event: CoordinateEvents) -> Bool { false }

  /// Looks at an event that came up from below, and says whether it goes on. Without an override
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
/// Programs that subclassed a generic `Coordinator<T>` go on doing so with
/// `typealias Coordinator<T: Coordinated> = TypedCoordinator<T>`.
open class TypedCoordinator<Root: Coordinated>: Coordinator {
  /// What it shows, which stays the same.
  public let rootViewController: Root

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootViewController: What it shows. It is held.
  public init(rootViewController: Root) {
    self.rootViewController = rootViewController
    super.init(rootResponder: rootViewController)
  }
}
