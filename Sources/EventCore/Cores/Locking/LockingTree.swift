// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The trees of the locking core: one lock for all, since trees merge. A walk collects the cells of
/// a phase with the lock held, and its thread calls them without.
enum LockingTree: TreeCore {
  // Everything but `changes` is under the lock. Lock order: nothing is locked within it; what is
  // let go of by a change, is let go of after it.

  private struct State {
    /// Counts what attaches and adds.
    var stamp: UInt64 = 0
    var walks: [LockingTreeWalk] = []
    var spare: [LockingTreeWalk] = []
    /// Counts the looks of walks at what has changed.
    var round: UInt64 = 0
    /// Those who wait for a cell not to be called.
    var waiting: [(cell: UInt, latch: Latch)] = []
  }
  private static let state = Guarded(State())
  /// Counts what may concern a walk: a node was detached, moved or ended, or somebody waits.
  /// Written with the lock held, watched by walks.
  private static let changes = Atomic<UInt64>(0)

  private static func noteChange() {
    // A walk that sees it takes the lock, and finds the change. Sequentially consistent for
    // `waitUntilDone`.
    changes.wrappingAdd(1, ordering: .sequentiallyConsistent)
  }

  // MARK: Nodes

  static func makeNode(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
    let node = LockingNodePointer.allocate(capacity: 1)
    node.initialize(to: LockingTreeNode(context))
    return UnsafeMutableRawPointer(node)
  }

  static func endNode(_ raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    let node = raw.assumingMemoryBound(to: LockingTreeNode.self)
    var unused: [UnsafeMutableRawPointer] = []
    let parent = state.withLock { state in
      let parent = unlink(node, &state)
      var next = node.pointee.firstCell
      while let cell = next {
        next = cell.links.pointee.next
        take(cell, &unused)
      }
      node.pointee.hasEnded = true
      let context = parent?.pointee.context
      LockingTreeNode.letGo(node)
      noteChange()
      return context
    }
    letGo(unused)
    return parent
  }

  static func attach(
    _ raw: UnsafeMutableRawPointer, to other: UnsafeMutableRawPointer
  ) -> TreeAttachment {
    let node = raw.assumingMemoryBound(to: LockingTreeNode.self)
    let parent = other.assumingMemoryBound(to: LockingTreeNode.self)
    return state.withLock { state in
      if node.pointee.firstChild != nil || node == parent {
        var above: LockingNodePointer? = parent
        while let one = above, one != node { above = one.pointee.parent }
        if above != nil { return .cycle }
      }
      let previous = unlink(node, &state)
      state.stamp += 1
      LockingTreeNode.link(node, under: parent, stamp: state.stamp)
      if previous != nil { noteChange() }
      return .attached(previous: previous?.pointee.context)
    }
  }

  static func detach(_ raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    state.withLock { state in
      let parent = unlink(raw.assumingMemoryBound(to: LockingTreeNode.self), &state)
      if parent != nil { noteChange() }
      return parent?.pointee.context
    }
  }

  /// Takes a node from its parent. Returns that one. With the lock held.
  private static func unlink(
    _ node: LockingNodePointer, _ state: inout State
  ) -> LockingNodePointer? {
    guard node.pointee.parent != nil else { return nil }
    for walk in state.walks { walk.collectRest() }
    return LockingTreeNode.unlink(node)
  }

  // MARK: Handlers

  static func add(
    _ raw: UnsafeMutableRawPointer, key: UInt, modes: UInt8, object: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    let node = raw.assumingMemoryBound(to: LockingTreeNode.self)
    let cell = LockingCellPointer.allocate(capacity: 1)
    state.withLock { state in
      state.stamp += 1
      cell.initialize(
        to: LockingTreeCell(node, key: key, modes: modes, object: object, stamp: state.stamp))
      LockingTreeNode.append(cell, to: node)
    }
    return UnsafeMutableRawPointer(cell)
  }

  static func remove(_ raw: UnsafeMutableRawPointer) -> Bool {
    let cell = raw.assumingMemoryBound(to: LockingTreeCell.self)
    var unused: [UnsafeMutableRawPointer] = []
    let isRemoved = state.withLock { _ in
      guard cell.pointee.isAlive else { return false }
      take(cell, &unused)
      return true
    }
    letGo(unused)
    return isRemoved
  }

  static func removeAll(_ raw: UnsafeMutableRawPointer, key: UInt, phases: UInt8) -> Int {
    let node = raw.assumingMemoryBound(to: LockingTreeNode.self)
    var unused: [UnsafeMutableRawPointer] = []
    let count = state.withLock { _ in
      var count = 0
      var next = node.pointee.firstCell
      while let cell = next {
        next = cell.links.pointee.next
        let isMeant =
          (key == 0 || cell.pointee.key == key)
          && (phases == 0 || cell.pointee.modes & phases != 0)
        if isMeant {
          take(cell, &unused)
          count += 1
        }
      }
      return count
    }
    letGo(unused)
    return count
  }

  /// Ends a cell and takes it from its node. With the lock held; `unused` is for `letGo`.
  private static func take(_ cell: LockingCellPointer, _ unused: inout [UnsafeMutableRawPointer]) {
    // Sequentially consistent: the first half of "write, then look" in `waitUntilDone`.
    cell.pointee.state.store(1, ordering: .sequentiallyConsistent)
    LockingTreeNode.take(cell, from: cell.pointee.node)
    if cell.links.pointee.pins == 0 { retire(cell, &unused) }
  }

  /// After the last walk and the list. With the lock held; `unused` is for `letGo`.
  private static func retire(_ cell: LockingCellPointer, _ unused: inout [UnsafeMutableRawPointer])
  {
    unused.append(cell.pointee.object)
    LockingTreeNode.letGo(cell.pointee.node)
    if !cell.links.pointee.isHandled { free(cell) }
  }

  /// Lets go of handlers, which is user code: with no lock held.
  private static func letGo(_ objects: [UnsafeMutableRawPointer]) {
    for object in objects { Unmanaged<TreeHandler>.fromOpaque(object).release() }
  }

  private static func free(_ cell: LockingCellPointer) {
    cell.deinitialize(count: 1)
    cell.deallocate()
  }

  static func release(_ raw: UnsafeMutableRawPointer) {
    let cell = raw.assumingMemoryBound(to: LockingTreeCell.self)
    state.withLock { _ in
      cell.links.pointee.isHandled = false
      if !cell.links.pointee.isListed, cell.links.pointee.pins == 0 { free(cell) }
    }
  }

  static func isActive(_ cell: UnsafeMutableRawPointer) -> Bool {
    // Acquiring: pairs with whoever ended it, under the lock.
    treeState(of: cell).pointee.load(ordering: .acquiring) == 0
  }

  static func waitUntilDone(_ cell: UnsafeMutableRawPointer) -> Bool {
    let address = UInt(bitPattern: cell)
    let latch = Latch()
    let thread = currentThreadNumber()
    enum Found { case nowhere, here, elsewhere }
    let found = state.withLock { state -> Found in
      // Publish, then look; a walk does it the other way round (`mayCall`). A walk that goes on from
      // this cell is seen to, or sees the change, and finds the latch once the lock is free.
      noteChange()
      let calling = state.walks.filter { isCalling($0, address) }
      guard !calling.isEmpty else { return .nowhere }
      guard !calling.contains(where: { $0.thread == thread }) else { return .here }
      state.waiting.append((address, latch))
      return .elsewhere
    }
    if found == .elsewhere { latch.wait() }
    return found != .here
  }

  private static func isCalling(_ walk: LockingTreeWalk, _ cell: UInt) -> Bool {
    // Sequentially consistent: the second half of the same.
    treeCalling(of: walk.head).pointee.load(ordering: .sequentiallyConsistent) == cell
  }

  /// Those who need wait no longer. With the lock held; to be opened without.
  private static func takeWaiting(_ state: inout State) -> [Latch] {
    guard !state.waiting.isEmpty else { return [] }
    let (still, done) = state.waiting.reduce(
      into: ([(cell: UInt, latch: Latch)](), [Latch]())
    ) { lists, entry in
      if state.walks.contains(where: { isCalling($0, entry.cell) }) {
        lists.0.append(entry)
      } else {
        lists.1.append(entry.latch)
      }
    }
    state.waiting = still
    return done
  }

  // MARK: Walks

  static func begin(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8)
    -> UnsafeMutablePointer<TreeWalk>?
  {
    state.withLock { state in
      let own = state.spare.popLast() ?? LockingTreeWalk()
      own.begin(
        node.assumingMemoryBound(to: LockingTreeNode.self), key: key, phases: phases,
        start: state.stamp)
      state.walks.append(own)
      return fill(own, &state) ? own.head : nil
    }
  }

  static func next(_ walk: UnsafeMutablePointer<TreeWalk>) -> Bool {
    var unused: [UnsafeMutableRawPointer] = []
    let (goesOn, done) = state.withLock { state in
      let own = own(walk)
      stopCalling(walk)
      own.unpin(all: false) { retire($0, &unused) }
      return (fill(own, &state), takeWaiting(&state))
    }
    for latch in done { latch.open() }
    letGo(unused)
    return goesOn
  }

  static func end(_ walk: UnsafeMutablePointer<TreeWalk>) {
    var unused: [UnsafeMutableRawPointer] = []
    let done = state.withLock { state in
      let own = own(walk)
      stopCalling(walk)
      own.unpin(all: true) { retire($0, &unused) }
      finish(own, &state)
      return takeWaiting(&state)
    }
    for latch in done { latch.open() }
    letGo(unused)
  }

  static func mayCall(_ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int) -> Bool {
    // Shown by `fill`.
    let cell = walk.pointee.cells.unsafelyUnwrapped[index]
      .assumingMemoryBound(to: LockingTreeCell.self)
    // Sequentially consistent, both: the other half of `waitUntilDone`.
    treeCalling(of: walk).pointee.store(UInt(bitPattern: cell), ordering: .sequentiallyConsistent)
    guard cell.pointee.state.load(ordering: .sequentiallyConsistent) == 0 else { return false }
    // The same with `noteChange`.
    if changes.load(ordering: .sequentiallyConsistent) != walk.pointee.changes {
      lookAgain(walk, from: index)
    }
    // Not nil: shown by `fill`.
    return !walk.pointee.isCut.unsafelyUnwrapped[index]
  }

  /// Once for each change, not for each cell: others want the lock.
  private static func lookAgain(_ walk: UnsafeMutablePointer<TreeWalk>, from index: Int) {
    let done = state.withLock { state in
      state.round += 1
      own(walk).lookAgain(from: index, round: state.round)
      let done = takeWaiting(&state)
      // If somebody waits for the very cell that this walk stands at, it looks again at the next one.
      // Relaxed, both: written by this thread; the lock orders the writers.
      let calling = treeCalling(of: walk).pointee.load(ordering: .relaxed)
      let isAwaited = state.waiting.contains { $0.cell == calling }
      walk.pointee.changes = changes.load(ordering: .relaxed) &- (isAwaited ? 1 : 0)
      return done
    }
    for latch in done { latch.open() }
  }

  private static func own(_ walk: UnsafeMutablePointer<TreeWalk>) -> LockingTreeWalk {
    // Not nil: every walk of this core has it. `walks` holds it from `begin` to `finish`.
    unsafeDowncast(walk.pointee.own.unsafelyUnwrapped.takeUnretainedValue(), to: LockingTreeWalk.self)
  }

  private static func stopCalling(_ walk: UnsafeMutablePointer<TreeWalk>) {
    // Releasing: what the handler did, before a waiter sees it done.
    treeCalling(of: walk).pointee.store(0, ordering: .releasing)
  }

  /// The next cells; ends the walk if there are none. With the lock held.
  private static func fill(_ own: LockingTreeWalk, _ state: inout State) -> Bool {
    switch own.collect() {
    case .nothing:
      finish(own, &state)
      return false
    case .now:
      // Relaxed: the lock orders the writers.
      own.head.pointee.changes = changes.load(ordering: .relaxed)
    case .earlier:
      // Another than it is: to be looked at again before the first call.
      own.head.pointee.changes = changes.load(ordering: .relaxed) &- 1
    }
    own.show()
    return true
  }

  private static func finish(_ own: LockingTreeWalk, _ state: inout State) {
    own.end()
    // The last to begin is mostly the first to end.
    if let index = state.walks.lastIndex(where: { $0 === own }) {
      state.walks.remove(at: index)
      state.spare.append(own)
    }
  }

  // MARK: Looking

  static func node(of raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
    // Constant; a walk's cell holds it.
    UnsafeMutableRawPointer(raw.assumingMemoryBound(to: LockingTreeCell.self).pointee.node)
  }

  static func top(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutableRawPointer {
    state.withLock { _ in UnsafeMutableRawPointer(own(walk).top) }
  }

  static func identifier(of cell: UnsafeMutableRawPointer) -> ObjectIdentifier {
    // An identifier is the address of an object, which may have ended since.
    let node = node(of: cell).assumingMemoryBound(to: LockingTreeNode.self)
    return unsafeBitCast(node.pointee.context, to: ObjectIdentifier.self)
  }

  static func withTrees(_ body: (any TreeReader) -> Void) {
    state.withLock { _ in body(Reader()) }
  }

  private struct Reader: TreeReader {
    private func node(_ raw: UnsafeMutableRawPointer) -> LockingNodePointer {
      raw.assumingMemoryBound(to: LockingTreeNode.self)
    }

    func parent(of raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      UnsafeMutableRawPointer(node(raw).pointee.parent)
    }

    func firstChild(of raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      UnsafeMutableRawPointer(node(raw).pointee.firstChild)
    }

    func nextSibling(of raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      UnsafeMutableRawPointer(node(raw).pointee.next)
    }

    func context(of raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      node(raw).pointee.hasEnded ? nil : node(raw).pointee.context
    }

    func firstCell(of raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      UnsafeMutableRawPointer(node(raw).pointee.firstCell)
    }

    func nextCell(after raw: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      let cell = raw.assumingMemoryBound(to: LockingTreeCell.self)
      return UnsafeMutableRawPointer(cell.links.pointee.next)
    }
  }
}
