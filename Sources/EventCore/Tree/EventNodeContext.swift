// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The argument of a handler that decides: the event, and its position in the tree.
///
/// ```swift
/// node.addHandler(.onRaise, for: ErrorEvent.self) { context in
///   context.depth > 0 && context.event.isLocal ? .consume : .continue
/// }
/// ```
///
/// **Threads**: the one that calls the handler. ``node``, ``previous`` and ``path`` lock the trees, as the
/// members of ``EventNode`` do; ``depth`` does not on the lock-free core.
///
/// **Complexity**: everything but the event is looked up when it is asked for, and costs nothing otherwise.
///
/// **Ownership**: it is valid during the call, and cannot be stored.
public struct EventNodeContext<E: Eventable>: ~Copyable {
  /// The event.
  public let event: E

  // All are valid during the call: the caller of `raise` has the source.
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

  /// Tells the handle of the handler, which may be called before that is registered.
  @usableFromInline
  func register(_ handle: EventNodeHandle) { handle.register(registration) }

  private var here: UnsafeMutableRawPointer { source.core.node(of: registration) }

  /// The node that raised the event, or that propagates it.
  public var source: EventNode { raiser._withUnsafeGuaranteedRef { $0 } }

  /// The node that has the handler. Nil if it has ended, or is ending: in the `deinit` of a subclass, too.
  public var node: EventNode? {
    let here = here
    return source.core.object { _ in here }
  }

  /// The node that the event visited before this one: in the raise phase a child, otherwise the parent. Nil
  /// at the node with which the phase began, and if this node or that one has ended, or is ending.
  ///
  /// It is found in the tree as that is at this moment: once a handler of the event has moved or detached the raiser, or a
  /// node above it, this may be another node, or nil.
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

  /// Whether the event came from another machine (``EventNode/raiseInward(event:scope:)``). What its handlers raise did
  /// not.
  ///
  /// **Threads**, **Ownership**: as for the context. **Complexity**: O(1).
  @_spi(Bridge)
  public var isInward: Bool { walk.pointee.scope & TreePhases.inward != 0 }

  /// How far the event goes. **Threads**, **Ownership**, **Complexity**: as for ``isInward``.
  @_spi(Bridge)
  public var scope: EventRaiseScope {
    EventRaiseScope(rawValue: walk.pointee.scope & EventRaiseScope.tree.rawValue)
  }

  @usableFromInline
  var hasArrived: Bool { isInward }

  /// How many nodes are above this one now; 0 if it has ended since the call began.
  ///
  /// **Complexity**: O(depth).
  public var depth: Int { source.core.depth(of: here) }

  /// The names of the nodes from the root to this one: `"app/cart/button"`. See ``EventNode/path``.
  /// Empty if this one has ended, or is ending.
  ///
  /// **Complexity**: O(depth).
  public var path: String { node?.path ?? "" }
}
