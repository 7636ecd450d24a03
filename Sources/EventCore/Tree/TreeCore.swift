// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The seam between the module and its two cores: nodes in trees, their handlers, and the walks of
/// raised events.
///
/// A node and a registration (one registered handler) are memory of the core's, which the module knows by
/// its address and by the layout in `TreeLayout.swift`. There is one core of each kind in a
/// program, since trees merge: so a core is a type, and what it has to remember is static.
///
/// What a walk promises is in the documents of ``EventNode/raise(event:scope:)``. User code runs
/// between two calls of these functions and never inside one, but for the end of handlers'
/// closures, which the core lets go of with no lock held.
@usableFromInline
protocol TreeCore: SendableMetatype {
  /// Makes a node without a parent. `context`: its `EventNode`, not retained.
  static func makeNode(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer

  /// Ends a node that has no children, and its handlers. Returns the context of the parent that it
  /// had.
  static func endNode(_ node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?

  /// Makes a node the last child of another.
  static func attach(
    _ node: UnsafeMutableRawPointer, to parent: UnsafeMutableRawPointer
  ) -> TreeAttachment

  /// Makes a node a root. Returns the context of the parent that it had.
  static func detach(_ node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?

  /// Adds a handler behind the node's others. `object` is a retained `TreeHandler`, which the core
  /// lets go of when the handler has ended and no walk needs it. The registration stays until `release`.
  static func add(
    _ node: UnsafeMutableRawPointer, key: UInt, modes: UInt8, object: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer

  /// Ends a handler: no call of it begins any more. False if it had ended already.
  static func remove(_ registration: UnsafeMutableRawPointer) -> Bool

  /// Whether a handler may still be called; once this is false no call of it begins (D6).
  static func isActive(_ registration: UnsafeMutableRawPointer) -> Bool

  /// Returns when no call of a removed handler is running. False, at once, if the calling thread is
  /// inside one.
  static func waitUntilDone(_ registration: UnsafeMutableRawPointer) -> Bool

  /// The caller needs the registration no longer.
  static func release(_ registration: UnsafeMutableRawPointer)

  /// Ends the handlers of a node with a key (0: every key) that are called in one of these phases
  /// (0: every phase). Returns how many.
  static func removeAll(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8) -> Int

  // MARK: Walking

  /// Begins a walk. Nil if nobody is to be called.
  ///
  /// - Parameters:
  ///   - phases: The bits of an `EventRaiseScope`, or `TreePhases.below`.
  static func begin(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8)
    -> UnsafeMutablePointer<TreeWalk>?

  /// Fills the walk with the registrations to call next. False if there are none; then it has ended.
  static func next(_ walk: UnsafeMutablePointer<TreeWalk>) -> Bool

  /// Whether a registration of the walk may still be called; asked when something has changed.
  static func mayCall(_ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int) -> Bool

  /// Ends a walk before its last registration.
  static func end(_ walk: UnsafeMutablePointer<TreeWalk>)

  // MARK: Looking

  /// The node of a registration of a walk. It may have ended, and then it is there until the walk goes on.
  static func node(of registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer

  /// The node at which a walk's ways down begin and its way up ends. It may have ended.
  static func top(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutableRawPointer

  /// The `EventNode` of a registration of a walk, which may have ended.
  static func identifier(of registration: UnsafeMutableRawPointer) -> ObjectIdentifier

  /// How many nodes are above a node, at one moment during the call; 0 once it has ended, which the
  /// registrations of a walk may outlive.
  static func depth(of node: UnsafeMutableRawPointer) -> Int

  /// Runs `body` while no tree changes. `body` runs no user code and lets go of nothing.
  static func withTrees(_ body: (any TreeReader) -> Void)
}

/// How a core's trees look while they do not change: inside `TreeCore.withTrees` alone.
@usableFromInline
protocol TreeReader {
  func parent(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func firstChild(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func nextSibling(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  /// The `EventNode`; nil once it has ended, which the registrations of a walk may outlive.
  func context(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func firstRegistration(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
  func nextRegistration(after registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
}

/// The result of attaching a node.
@usableFromInline
enum TreeAttachment {
  /// It is where it was wanted. With the context of the parent that it had before.
  case attached(previous: UnsafeMutableRawPointer?)
  /// It is an ancestor of the new parent, or the parent itself. Nothing has changed.
  case cycle
}
