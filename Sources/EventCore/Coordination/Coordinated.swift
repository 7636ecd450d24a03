// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a ``Coordinator`` shows, with a link to that coordinator: events go from here to the coordinators.
///
/// ```swift
/// final class ShopViewController: ViewController, Coordinated {
///   weak var parentCoordinator: Coordinator?
/// }
/// ```
///
/// **Ownership**: declare the link `weak`, since the coordinator retains what it shows. The coordinator
/// sets and clears it (``Coordinator/rootResponder``).
///
/// **Threads**: those of its coordinator, one at a time.
public protocol Coordinated: EventWaypoint {
  /// The coordinator that shows this, if any.
  var parentCoordinator: Coordinator? { get set }
}

/// What a ``UICoordinator`` shows: ``Coordinated`` on the MainActor.
///
/// ```swift
/// final class ShopViewController: UIViewController, UICoordinated {
///   weak var parentCoordinator: UICoordinator?
/// }
/// ```
@MainActor
@preconcurrency
public protocol UICoordinated: EventWaypoint {
  /// The coordinator that shows this, if any. Declare it `weak`.
  var parentCoordinator: UICoordinator? { get set }
}
