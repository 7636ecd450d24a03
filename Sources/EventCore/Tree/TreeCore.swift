// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The seam between `EventNode` and the two cores: nodes, their handlers, and the walks of raised events.
///
/// A node and a registration (one registered handler) are memory of the core, with the layout in
/// `TreeLayout.swift`. Trees can be joined, so there is one core of each kind in a program: it is a type with
/// static state.
///
/// ``EventNode/raise(event:scope:)`` says what a walk promises. None of these functions runs user code,
/// except when it releases the closure of a handler, which it does with no lock held.
@usableFromInline
protocol TreeCore: SendableMetatype {
  /// Makes a node without a parent. `context` is its `EventNode`, which is not retained.
  static func makeNode(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer

  /// Ends a node, which has no children, and its handlers. Returns the context of its former parent.
  static func endNode(_ node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?

  /// Makes a node the last child of another.
  static func attach(
    _ node: UnsafeMutableRawPointer, to parent: UnsafeMutableRawPointer
  ) -> TreeAttachment

  /// Makes a node a root. Returns the context of its former parent.
  static func detach(_ node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?

  /// Adds a handler behind the node's others. `object` is a retained `TreeHandler`, which the core releases
  /// when the handler has ended and no walk needs it. The registration is valid until `release`.
  static func add(
    _ node: UnsafeMutableRawPointer, key: UInt, modes: UInt8, object: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer

  /// Removes a handler: no call of it begins any more. False if it had ended before.
  static func remove(_ registration: UnsafeMutableRawPointer) -> Bool

  /// Whether a handler may still be called. Once this is false, no call of it begins (D6).
  static func isActive(_ registration: UnsafeMutableRawPointer) -> Bool

  /// Waits until no call of a removed handler is running. Returns false at once if the calling thread is
  /// inside such a call.
  static func waitUntilDone(_ registration: UnsafeMutableRawPointer) -> Bool

  /// Gives up a registration that `add` returned.
  static func release(_ registration: UnsafeMutableRawPointer)

  /// Removes the handlers of a node for a key (0: every key) that are called in one of these phases (0: every
  /// phase). Returns how many.
  static func removeAll(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8) -> Int

  // MARK: Walking

  /// Begins a walk. Nil if there is no handler to call.
  ///
  /// - Parameters:
  ///   - phases: The bits of an `EventRaiseScope`, and of `TreePhases`.
  static func begin(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8)
    -> UnsafeMutablePointer<TreeWalk>?

  /// Fills the walk with the registrations to call next. False if there are none; then the walk has ended.
  static func next(_ walk: UnsafeMutablePointer<TreeWalk>) -> Bool

  /// Whether a registration of the walk may still be called; asked when something has changed.
  static func mayCall(_ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int) -> Bool

  /// Ends a walk before its last registration.
  static func end(_ walk: UnsafeMutablePointer<TreeWalk>)

  // MARK: Looking

  /// The node of a registration of a walk. It may have ended; it is valid until the walk's next step.
  static func node(of registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer

  /// The node at which the walk's phases down begin and its phase up ends. It may have ended.
  static func top(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutableRawPointer

  /// The `EventNode` of a registration of a walk, which may have ended.
  static func identifier(of registration: UnsafeMutableRawPointer) -> ObjectIdentifier

  /// How many nodes are above a node, at one moment during the call; 0 if it has ended, which the node of a
  /// walk's registration may have.
  static func depth(of node: UnsafeMutableRawPointer) -> Int

  /// Runs `body` with the trees locked. `body` runs no user code and releases no object.
  static func withTrees(_ body: (any TreeReader) -> Void)
}

/// Reads a core's trees, which are locked: only inside `TreeCore.withTrees`.
@usableFromInline
protocol TreeReader {
  func parent(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func firstChild(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func nextSibling(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  /// The `EventNode`; nil if it has ended, which the node of a walk's registration may have.
  func context(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func firstRegistration(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func nextRegistration(after registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
}

/// The result of attaching a node.
@usableFromInline
enum TreeAttachment {
  /// The node is attached. With the context of its former parent.
  case attached(previous: UnsafeMutableRawPointer?)
  /// The node is an ancestor of the new parent, or the parent itself. Nothing has changed.
  case cycle
}
