// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a deciding handler of a node is given: the event, and where on its way it is.
///
/// ```swift
/// node.addHandler(.onRaise, for: ErrorEvent.self) { context in
///   context.depth > 0 && context.event.isLocal ? .consume : .continue
/// }
/// ```
///
/// **Threads**: the one that calls the handler. ``node``, ``previous`` and ``path`` look at the tree
/// as those of ``EventNode`` do: they take the lock of those who change trees. ``depth`` takes none.
///
/// **Complexity**: everything but the event is looked up when it is asked for, and costs nothing
/// otherwise.
///
/// **Ownership**: it is there for the length of the call, and cannot be stored.
public struct EventNodeContext<E: Eventable>: ~Copyable {
  /// The event.
  public let event: E

  // Both are there for the length of the call, as is the source, which the caller of `raise` has.
  private let raiser: Unmanaged<EventNode>
  private let walk: UnsafeMutablePointer<TreeWalk>
  private let registration: UnsafeMutableRawPointer

  @usableFromInline
  init(
    _ event: E, _ source: EventNode, _ walk: UnsafeMutablePointer<TreeWalk>,
    _ registration: UnsafeMutableRawPointer
  ) {
    self.event = event
    raiser = .passUnretained(source)
    self.walk = walk
    self.registration = registration
  }

  /// The core's node.
  private var here: UnsafeMutableRawPointer { source.core.node(of: registration) }

  /// The node that raised the event, or that propagates it.
  public var source: EventNode { raiser._withUnsafeGuaranteedRef { $0 } }

  /// The node whose handler this is. Nil if it has ended since the call began.
  public var node: EventNode? {
    let here = here
    return source.core.object { _ in here }
  }

  /// The node before this one on the event's way: the child it came from when it is raised, else
  /// the parent. Nil where the phase began, and if this node has ended since the call began.
  ///
  /// **Complexity**: O(depth) when the event is raised, O(1) otherwise.
  public var previous: EventNode? {
    let (phase, source, here, top) = (phase, source, here, source.core.top(of: walk))
    return source.core.object { trees in
      guard phase == .raise else { return top == here ? nil : trees.parent(of: here) }
      guard source.node != here else { return nil }
      var below = source.node
      while let above = trees.parent(of: below), above != here { below = above }
      return trees.parent(of: below) == nil ? nil : below
    }
  }

  /// In which phase the handler is called.
  public var phase: EventPhase {
    // The core writes no other value.
    EventPhase(rawValue: UInt8(truncatingIfNeeded: walk.pointee.phase)).unsafelyUnwrapped
  }

  /// How many nodes are above this one, as the tree is now; 0 if it has ended since the call began.
  ///
  /// **Complexity**: O(depth).
  public var depth: Int { source.core.depth(of: here) }

  /// The names of the nodes from the root to this one: `"app/cart/button"`. See ``EventNode/path``.
  /// Empty if this one has ended since the call began.
  ///
  /// **Complexity**: O(depth).
  public var path: String { node?.path ?? "" }
}
