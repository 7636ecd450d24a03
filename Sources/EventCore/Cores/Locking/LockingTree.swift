// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The trees of the locking core: one lock for all, since trees merge. A walk collects registrations with the
/// lock held, and its thread calls them without. One file, though long: whatever takes the lock is in here.
enum LockingTree: TreeCore {
  // Lock order: nothing is locked within the lock. What a change lets go of, it lets go of after the unlock.

  private struct State {
    /// Counts what is attached and added.
    var stamp: UInt64 = 0
    var walks: [LockingTreeWalk] = []
    var spare: [LockingTreeWalk] = []
    /// Handlers to let go of after the unlock.
    var unused: [UnsafeMutableRawPointer] = []
  }
  private static let state = Guarded(State())
  /// Woken when a walk goes on from a call that somebody waits for.
  private static let progress = Monitor(state.mutex)

  /// Runs `body` with the lock held, and then lets go of handlers, whose end is code of the user's.
  private static func change<Result>(_ body: (inout State) -> Result) -> Result {
    var unused: [UnsafeMutableRawPointer] = []
    let result = state.withLock { state in
      let result = body(&state)
      if !state.unused.isEmpty { swap(&unused, &state.unused) }
      return result
    }
    for object in unused { Unmanaged<TreeHandler>.fromOpaque(object).release() }
    return result
  }

  private static func pointer(_ node: UnsafeMutableRawPointer) -> LockingNodePointer {
    node.assumingMemoryBound(to: LockingTreeNode.self)
  }

  // MARK: Nodes

  static func makeNode(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
    let node = LockingNodePointer.allocate(capacity: 1)
    node.initialize(to: LockingTreeNode(context: context))
    return UnsafeMutableRawPointer(node)
  }

  static func endNode(_ raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    change { state in
      let node = pointer(raw)
      let parent = unlink(node, &state)
      while let registration = node.pointee.registrations.first { end(registration, &state) }
      node.pointee.hasEnded = true
      LockingTreeNode.release(node)
      return parent
    }
  }

  static func attach(
    _ raw: UnsafeMutableRawPointer, to other: UnsafeMutableRawPointer
  ) -> TreeAttachment {
    let (node, parent) = (pointer(raw), pointer(other))
    return state.withLock { state in
      // Only a node with children can be above another one.
      var above = node == parent || node.pointee.children.first != nil ? parent : nil
      while let one = above, one != node { above = one.pointee.parent }
      if above != nil { return .cycle }
      let previous = unlink(node, &state)
      state.stamp += 1
      node.pointee.stamp = state.stamp
      node.pointee.parent = parent
      parent.pointee.children.append(node)
      return .attached(previous: previous)
    }
  }

  static func detach(_ node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    state.withLock { unlink(pointer(node), &$0) }
  }

  /// Takes a node from its parent, whose context it returns. With the lock held.
  private static func unlink(
    _ node: LockingNodePointer, _ state: inout State
  ) -> UnsafeMutableRawPointer? {
    guard let parent = node.pointee.parent else { return nil }
    if !state.walks.isEmpty {
      let thread = currentThreadNumber()
      for walk in state.walks { walk.willDetach(node, from: parent, by: thread) }
    }
    parent.pointee.children.remove(node)
    node.pointee.parent = nil
    return parent.pointee.context
  }

  // MARK: Handlers

  static func add(
    _ raw: UnsafeMutableRawPointer, key: UInt, modes: UInt8, object: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    let (node, registration) = (pointer(raw), LockingRegistrationPointer.allocate(capacity: 1))
    return state.withLock { state in
      state.stamp += 1
      registration.initialize(
        to: LockingRegistration(
          node: node, key: key, stamp: state.stamp, face: .init(modes: modes, object: object)))
      node.pointee.references += 1
      node.pointee.registrations.append(registration)
      return registration.face
    }
  }

  static func remove(_ raw: UnsafeMutableRawPointer) -> Bool {
    change { state in
      let isAlive = isActive(raw)
      if isAlive { end(LockingRegistrationPointer(face: raw), &state) }
      return isAlive
    }
  }

  static func removeAll(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8) -> Int {
    change { state in
      var count = 0
      var next = pointer(node).pointee.registrations.first
      while let registration = next {
        next = registration.pointee.next
        if key == 0 || registration.pointee.key == key,
          phases == 0 || registration.pointee.face.modes & phases != 0
        {
          end(registration, &state)
          count += 1
        }
      }
      return count
    }
  }

  /// Ends a handler and takes its registration from its node. With the lock held.
  private static func end(_ registration: LockingRegistrationPointer, _ state: inout State) {
    // Sequentially consistent: pairs with `mayCall`, as the loads in `isCalling` after it.
    treeState(of: registration.face).pointee.store(1, ordering: .sequentiallyConsistent)
    registration.pointee.node.pointee.registrations.remove(registration)
    release(registration, &state)
  }

  /// Removes a use of a registration. With the lock held.
  private static func release(_ registration: LockingRegistrationPointer, _ state: inout State) {
    registration.pointee.uses -= 1
    guard registration.pointee.uses == 0 else { return }
    state.unused.append(registration.pointee.face.object)
    LockingTreeNode.release(registration.pointee.node)
    if !registration.pointee.isHandled { registration.deallocate() }
  }

  static func release(_ raw: UnsafeMutableRawPointer) {
    let registration = LockingRegistrationPointer(face: raw)
    state.withLock { _ in
      registration.pointee.isHandled = false
      if registration.pointee.uses == 0 { registration.deallocate() }
    }
  }

  static func isActive(_ registration: UnsafeMutableRawPointer) -> Bool {
    // Acquiring: pairs with `end`.
    treeState(of: registration).pointee.load(ordering: .acquiring) == 0
  }

  static func waitUntilDone(_ registration: UnsafeMutableRawPointer) -> Bool {
    let thread = currentThreadNumber()
    state.mutex.lock()
    defer { state.mutex.unlock() }
    while true {
      let calling = state.value.pointee.walks.filter { isCalling($0, UInt(bitPattern: registration)) }
      if calling.isEmpty { return true }
      if calling.contains(where: { $0.thread == thread }) { return false }
      _ = progress.wait(until: nil)
    }
  }

  /// Whether a walk calls a registration that has ended. The walk is asked to wake `progress` when it goes on. With
  /// the lock held.
  private static func isCalling(_ walk: LockingTreeWalk, _ registration: UInt) -> Bool {
    // Sequentially consistent, both: pairs with `mayCall`. Either that one sees that the registration has ended, or
    // we see the call; and either it sees that it is asked, or we see that it has gone on. Those that call another one
    // are not asked, since each that is takes the lock.
    guard treeCalling(of: walk.head).pointee.load(ordering: .sequentiallyConsistent) == registration else { return false }
    treeAttention(of: walk.head).pointee.store(LockingTreeWalk.looks, ordering: .sequentiallyConsistent)
    return treeCalling(of: walk.head).pointee.load(ordering: .sequentiallyConsistent) == registration
  }

  // MARK: Walks

  static func begin(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8)
    -> UnsafeMutablePointer<TreeWalk>?
  {
    state.withLock { state in
      let own = state.spare.popLast() ?? LockingTreeWalk()
      state.walks.append(own)
      own.begin(pointer(node), key: key, phases: phases, start: state.stamp)
      if own.fill() { return own.head }
      finish(own, &state)
      return nil
    }
  }

  static func next(_ walk: UnsafeMutablePointer<TreeWalk>) -> Bool { advance(walk, ends: false) }
  static func end(_ walk: UnsafeMutablePointer<TreeWalk>) { _ = advance(walk, ends: true) }

  /// Releases the chunk and collects the next one. False if the walk has ended: if it is to end, or if
  /// nothing is left.
  private static func advance(_ walk: UnsafeMutablePointer<TreeWalk>, ends: Bool) -> Bool {
    change { state in
      let own = own(walk)
      // Releasing: pairs with `isCalling`, so that whoever waits sees what the handler did.
      treeCalling(of: walk).pointee.store(0, ordering: .releasing)
      // Relaxed: others write it under the lock.
      if treeAttention(of: walk).pointee.load(ordering: .relaxed) == LockingTreeWalk.looks {
        progress.wakeAll()
      }
      own.releaseChunk { release($0, &state) }
      if !ends, own.fill() { return true }
      finish(own, &state)
      return false
    }
  }

  private static func finish(_ own: LockingTreeWalk, _ state: inout State) {
    own.end()
    // The last to begin is mostly the first to end.
    if let index = state.walks.lastIndex(where: { $0 === own }) {
      state.walks.remove(at: index)
      state.spare.append(own)
    }
  }

  static func mayCall(_ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int) -> Bool {
    // Not nil: `fill` has set it.
    let registration = walk.pointee.registrations.unsafelyUnwrapped[index]
    // Sequentially consistent, all three: "publish, then look". Pairs with `isCalling`, which looks after the
    // registration has ended.
    treeCalling(of: walk).pointee.store(UInt(bitPattern: registration), ordering: .sequentiallyConsistent)
    guard treeState(of: registration).pointee.load(ordering: .sequentiallyConsistent) == 0
    else { return false }
    let attention = treeAttention(of: walk).pointee.load(ordering: .sequentiallyConsistent)
    return attention == LockingTreeWalk.asks || lookAgain(walk, registration)
  }

  /// Wakes those who wait for the call before, and returns whether a registration is still where it was when
  /// the walk began.
  @inline(never)
  private static func lookAgain(
    _ walk: UnsafeMutablePointer<TreeWalk>, _ registration: UnsafeMutableRawPointer
  ) -> Bool {
    state.withLock { _ in
      progress.wakeAll()
      return own(walk).reaches(LockingRegistrationPointer(face: registration).pointee.node)
    }
  }

  private static func own(_ walk: UnsafeMutablePointer<TreeWalk>) -> LockingTreeWalk {
    // Not nil: every walk of this core has it. `walks` holds it from `begin` to `finish`.
    unsafeDowncast(walk.pointee.own.unsafelyUnwrapped.takeUnretainedValue(), to: LockingTreeWalk.self)
  }

  // MARK: Looking

  static func node(of registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
    // Constant; a registration refers to its node.
    UnsafeMutableRawPointer(LockingRegistrationPointer(face: registration).pointee.node)
  }

  static func top(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutableRawPointer {
    // Written by this thread, when the walk began.
    UnsafeMutableRawPointer(own(walk).top)
  }

  static func identifier(of registration: UnsafeMutableRawPointer) -> ObjectIdentifier {
    // An identifier is the address of an object, which may have ended since.
    unsafeBitCast(pointer(node(of: registration)).pointee.context, to: ObjectIdentifier.self)
  }

  static func withTrees(_ body: (any TreeReader) -> Void) {
    state.withLock { _ in body(Reader()) }
  }

  private struct Reader: TreeReader {
    func parent(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      UnsafeMutableRawPointer(pointer(node).pointee.parent)
    }

    func firstChild(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      UnsafeMutableRawPointer(pointer(node).pointee.children.first)
    }

    func nextSibling(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      UnsafeMutableRawPointer(pointer(node).pointee.next)
    }

    func context(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      pointer(node).pointee.hasEnded ? nil : pointer(node).pointee.context
    }

    func firstRegistration(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      pointer(node).pointee.registrations.first?.face
    }

    func nextRegistration(after registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      LockingRegistrationPointer(face: registration).pointee.next?.face
    }
  }
}
