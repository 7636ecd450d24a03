// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A program that was written for Coordinate imports this module alone: it exports EventCore, and adds what
// only such programs use.
@_exported public import EventCore

/// Any coordinator, by its name in Coordinate.
public typealias Coordinating = UICoordinator

/// A screen of a coordinator, by its name in Coordinate.
public typealias Coordinated = UICoordinated

/// A coordinator on the MainActor that knows the type of its root screen, as those of Coordinate do.
///
/// ```swift
/// final class TeamsCoordinator: Coordinator<TeamsViewController> {
///   override func start() {
///     super.start()
///     rootViewController.show(teams)
///   }
/// }
/// ```
///
/// **Threads**: the MainActor. **Ownership**: it retains its root screen.
///
/// In a file that imports this module, EventCore's coordinator, which is on no actor and not generic, is
/// called `EventCore.Coordinator`.
@MainActor
@preconcurrency
open class Coordinator<Root: UICoordinated>: UICoordinator {
  /// The root screen.
  public let rootViewController: Root

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootViewController: The root screen, which is retained.
  public init(rootViewController: Root) {
    self.rootViewController = rootViewController
    super.init(rootResponder: rootViewController)
  }
}

extension UICoordinator {
  /// The name of its class, by which Coordinate identifies coordinators. **Threads**: any.
  public nonisolated var identifier: String { String(describing: Self.self) }

  /// Starts the coordinator, and calls a closure before this returns. **Threads**: the MainActor.
  public final func start(with completion: () -> Void) {
    start()
    completion()
  }

  /// Stops the coordinator, and calls a closure before this returns. **Threads**: the MainActor.
  public final func stop(with completion: () -> Void) {
    stop()
    completion()
  }
}
