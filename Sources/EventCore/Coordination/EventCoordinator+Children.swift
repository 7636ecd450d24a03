// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

extension EventCoordinator {
  /// Takes a coordinator as the last child, and starts it.
  ///
  /// - Parameter child: A coordinator that is not started.
  ///
  /// As ``addChild(_:)`` and the child's `start()`. To start one below a coordinator that was
  /// stopped is a mistake, and traps: nobody above would hear of it.
  ///
  /// **Ownership**: the child is kept until it is stopped or removed.
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

  /// Takes a coordinator as the last child, out of the hands of its parent if it has another.
  ///
  /// - Parameter child: Neither this coordinator nor one above it, or the program ends, as it does
  ///   if this coordinator is being stopped. One that is a child already keeps its place.
  ///
  /// **Ownership**: the child is kept until it is stopped or removed.
  ///
  /// **Complexity**: O(1) for a child without children; O(depth) otherwise.
  public final func addChild(_ child: EventCoordinator) {
    guard child.parentCoordinator !== self else { return }
    require(
      state != .stopping,
      """
      A coordinator that is being stopped takes no child; one of type \(type(of: self)) \
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

  /// Lets a child go, without stopping it.
  ///
  /// - Returns: False if it was not a child of this coordinator.
  @discardableResult
  public final func removeChild(_ child: EventCoordinator) -> Bool {
    guard child.parentCoordinator === self else { return false }
    child.removeFromParent()
    return true
  }

  /// Leaves the parent, if there is one, without being stopped.
  ///
  /// **Ownership**: the parent held it. Unless somebody else does, it is freed.
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

  func isBelow(_ other: EventCoordinator) -> Bool {
    var current = parentCoordinator
    while let coordinator = current {
      if coordinator === other { return true }
      current = coordinator.parentCoordinator
    }
    return false
  }
}
