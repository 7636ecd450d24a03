// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A program that comes from Coordinate imports this module and nothing else: all of EventCore, and
// what is written here for such programs alone.
@_exported public import EventCore

/// What Coordinate calls any coordinator: the parent of what is shown.
public typealias Coordinating = UICoordinator

/// What Coordinate calls a screen of a coordinator.
public typealias Coordinated = UICoordinated

/// A coordinator on the MainActor that knows the type of what it shows, as Coordinate's is.
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
/// **Threads**: the MainActor. **Ownership**: it holds what it shows.
///
/// EventCore's own `Coordinator`, which is on no actor and has no parameter, is
/// `EventCore.Coordinator` in a file that imports this module.
@MainActor
@preconcurrency
open class Coordinator<Root: UICoordinated>: UICoordinator {
  /// What it shows, which stays the same.
  public let rootViewController: Root

  /// Makes a coordinator that is not started.
  ///
  /// - Parameter rootViewController: What it shows. It is held.
  public init(rootViewController: Root) {
    self.rootViewController = rootViewController
    super.init(rootResponder: rootViewController)
  }

  /// Makes what it shows lead here again, after another coordinator had it. Override it to show it;
  /// call super.
  open func activate() {
    rootResponder = rootViewController
  }
}

extension UICoordinator {
  /// The name of its class, by which Coordinate tells coordinators apart. **Threads**: any.
  public nonisolated var identifier: String { String(describing: Self.self) }

  /// Begins its work, and calls a closure before it returns. **Threads**: the MainActor.
  public final func start(with completion: () -> Void) {
    start()
    completion()
  }

  /// Ends its work, and calls a closure before it returns. **Threads**: the MainActor.
  public final func stop(with completion: () -> Void) {
    stop()
    completion()
  }
}
