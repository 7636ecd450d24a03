// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

extension EventCoordinator {
  /// Adds a coordinator as the last child (``addChild(_:)``), and starts it.
  ///
  /// - Parameter child: A coordinator that is not started. It is retained until it is stopped or removed.
  ///
  /// It traps if this coordinator was stopped, since its events would reach nobody above, and as ``addChild(_:)`` does.
  public final func startChild(_ child: EventCoordinator) {
    require(
      state != .stopped,
      """
      A coordinator that was stopped asks nobody and passes on nothing; one of type \
      \(type(of: child)) was to be started below one of type \(type(of: self)) that is stopped: call \
      the latter's start() first.
      """)
    addChild(child)
    child.performStart()
  }

  /// Adds a coordinator as the last child, and removes it from its present parent.
  ///
  /// - Parameter child: It is retained until it is stopped or removed. A coordinator that is a child
  ///   already keeps its place.
  ///
  /// It traps if the child is this coordinator or one above it, or while this coordinator or one above it is being
  /// stopped.
  ///
  /// **Complexity**: O(1) for a child without children, unless any coordinator is being stopped; O(depth) otherwise. A
  /// present parent adds what ``removeFromParent()`` takes.
  public final func addChild(_ child: EventCoordinator) {
    guard child.parentCoordinator !== self else { return }
    require(
      !isBeingStopped,
      """
      A coordinator takes no child while it or one above it is being stopped; one of type \(type(of: self)) \
      was given one of type \(type(of: child)): start it elsewhere, or later.
      """)
    require(
      child !== self && (child.childCoordinators.isEmpty || !isBelow(child)),
      """
      The parents of a coordinator lead to a top. One of type \(type(of: child)) cannot be a \
      child of one of type \(type(of: self)) that \(child === self ? "is the same" : "is below it"): \
      take one of them out with removeFromParent() first.
      """)
    child.removeFromParent()
    childCoordinators.append(child)
    child.parentCoordinator = self
    Self.moves.wrappingAdd(1, ordering: .relaxed)
  }

  /// Removes a child without stopping it.
  ///
  /// - Returns: False if it was not a child of this coordinator.
  @discardableResult
  public final func removeChild(_ child: EventCoordinator) -> Bool {
    guard child.parentCoordinator === self else { return false }
    child.removeFromParent()
    return true
  }

  /// Leaves the parent, if there is one, without being stopped. The parent releases it.
  ///
  /// **Complexity**: O(1) for the last child, O(siblings) otherwise.
  public final func removeFromParent() {
    guard let parent = parentCoordinator else { return }
    parentCoordinator = nil
    Self.moves.wrappingAdd(1, ordering: .relaxed)
    if let index = parent.childCoordinators.lastIndex(where: { $0 === self }) {
      parent.childCoordinators.remove(at: index)
    }
  }

  /// Whether it or one above it is being stopped. A child that it got then would be stopped at once, and since each one
  /// may be answered by the next, perhaps for ever.
  private var isBeingStopped: Bool {
    guard Self.stops.load(ordering: .relaxed) > 0 else { return false }
    var current: EventCoordinator? = self
    while let coordinator = current, coordinator.state != .stopping { current = coordinator.parentCoordinator }
    return current != nil
  }

  func isBelow(_ other: EventCoordinator) -> Bool {
    var current = parentCoordinator
    while let coordinator = current {
      if coordinator === other { return true }
      current = coordinator.parentCoordinator
    }
    return false
  }
}
