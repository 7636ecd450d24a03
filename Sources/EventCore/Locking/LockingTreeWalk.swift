// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What the locking core knows about a walk. Used again by later walks, with its buffer.
///
/// All of it is touched with the tree's lock held, but for the head and the cells in the buffer, which
/// the walking thread reads without.
final class LockingTreeWalk {
  private var buffer: UnsafeMutablePointer<UnsafeMutableRawPointer>
  /// The objects of the cells in the buffer.
  private var objects: UnsafeMutablePointer<UnsafeRawPointer>
  /// The cells to call now.
  private var chunk = 0..<0
  /// Those of the next phase, which were collected along with them.
  private var following = 0..<0
  private var count = 0
  private var capacity = 16
  private var source: LockingNodePointer!
  /// Where propagation begins: the root when the walk began, or the node itself.
  private var top: LockingNodePointer!
  private var key: UInt = 0
  /// What was added or attached later is for the next walk.
  private var start: UInt64 = 0
  /// The phases that are still to come.
  private var phases: UInt8 = 0
  private var phase: UInt8 = 0
  private(set) var thread: UInt = 0
  /// Never what was seen: the state of each cell is looked at, as `LockingTree.mayCall` does.
  private let clock: UnsafeMutablePointer<Atomic<UInt64>>
  /// What the walking thread reads.
  let head: UnsafeMutablePointer<TreeWalk>

  init() {
    buffer = .allocate(capacity: capacity)
    objects = .allocate(capacity: capacity)
    clock = .allocate(capacity: 1)
    clock.initialize(to: Atomic(.max))
    head = .allocate(capacity: 1)
    head.initialize(to: TreeWalk(clock: clock))
    // Asked always: it looks for changes itself.
    head.pointee.attention = 1
  }

  deinit {
    buffer.deallocate()
    objects.deallocate()
    head.deallocate()
    clock.deinitialize(count: 1)
    clock.deallocate()
  }

  private var cells: UnsafeMutablePointer<UnsafeMutableRawPointer> { buffer + chunk.lowerBound }

  func begin(
    _ source: LockingNodePointer, key: UInt, phases: UInt8, start: UInt64
  ) {
    self.source = source
    self.key = key
    self.phases = phases
    self.start = start
    thread = currentThreadNumber()
    var top = source
    if phases & TreePhases.below == 0 {
      while let above = top.pointee.parent { top = above }
    }
    self.top = top
    source.pointee.references += 1
    top.pointee.references += 1
  }

  /// After the last chunk.
  func end() {
    LockingTreeNode.letGo(source)
    LockingTreeNode.letGo(top)
    source = nil
    top = nil
    chunk = 0..<0
    following = 0..<0
    count = 0
  }

  /// Takes the cells back that were to be called. `unused` is told those that nobody needs any more.
  /// With `all`, those of the next phase too.
  func unpin(all: Bool, _ unused: (LockingCellPointer) -> Void) {
    for index in chunk.lowerBound..<(all ? count : chunk.upperBound) {
      let cell = buffer[index].assumingMemoryBound(to: LockingTreeCell.self)
      cell.links.pointee.pins -= 1
      if cell.links.pointee.pins == 0, !cell.links.pointee.isListed { unused(cell) }
    }
  }

  enum Collected {
    case nothing
    /// Cells that were found when the walk began.
    case earlier
    /// Cells as the trees are now.
    case now
  }

  /// Goes on to the next phase that has cells, after `unpin`. They are pinned.
  func collect() -> Collected {
    if phases & (EventPhase.capture.rawValue | EventPhase.raise.rawValue) != 0 {
      // Both at once: what the handlers of the one do to the route is looked at before each call.
      count = 0
      if take(.capture) { collectRouteDown() }
      let captured = count
      if take(.raise) { collectRouteUp() }
      chunk = 0..<captured
      following = captured..<count
      phase = EventPhase.capture.rawValue
      if !chunk.isEmpty { return .now }
    }
    if !following.isEmpty {
      chunk = following
      following = 0..<0
      phase = EventPhase.raise.rawValue
      return chunk.lowerBound == 0 ? .now : .earlier
    }
    count = 0
    chunk = 0..<0
    if take(.propagate) {
      phase = EventPhase.propagate.rawValue
      collectTree()
      chunk = 0..<count
    }
    return count == 0 ? .nothing : .now
  }

  /// Shows the collected cells to the walking thread.
  func show() {
    head.pointee.cells = cells
    head.pointee.objects = objects + chunk.lowerBound
    head.pointee.count = UInt32(chunk.count)
    head.pointee.phase = UInt32(phase)
  }

  private func take(_ phase: EventPhase) -> Bool {
    defer { phases &= ~phase.rawValue }
    return phases & phase.rawValue != 0
  }

  /// Whether a node is still under the top by what was there when the walk began.
  func reaches(_ node: LockingNodePointer) -> Bool {
    var node = node
    while node != top {
      guard node.pointee.stamp <= start, let above = node.pointee.parent else { return false }
      node = above
    }
    return !top.pointee.hasEnded
  }

  // MARK: Collecting

  private func collectRouteUp() {
    forEachOfRoute { collectCells(of: $0, EventPhase.raise.rawValue) }
  }

  private func collectRouteDown() {
    // Upwards and each node's cells backwards, then turned round.
    forEachOfRoute { node in
      var next = node.pointee.lastCell
      while let cell = next {
        append(cell, EventPhase.capture.rawValue)
        next = cell.links.pointee.previous
      }
    }
    var found = UnsafeMutableBufferPointer(start: buffer, count: count)
    found.reverse()
    var foundObjects = UnsafeMutableBufferPointer(start: objects, count: count)
    foundObjects.reverse()
  }

  /// The nodes from the source to the root, when the walk begins.
  private func forEachOfRoute(_ body: (LockingNodePointer) -> Void) {
    var next: LockingNodePointer? = source
    while let node = next {
      body(node)
      next = node.pointee.parent
    }
  }

  private func collectTree() {
    guard !top.pointee.hasEnded else { return }
    var node: LockingNodePointer = top
    while true {
      collectCells(of: node, EventPhase.propagate.rawValue)
      if let child = firstThen(node.pointee.firstChild) {
        node = child
        continue
      }
      while node != top {
        if let sibling = firstThen(node.pointee.next) {
          node = sibling
          break
        }
        // Not nil: the walk came down this way, with the lock held.
        node = node.pointee.parent.unsafelyUnwrapped
      }
      if node == top { return }
    }
  }

  /// The first of these siblings that was there when the walk began.
  private func firstThen(_ first: LockingNodePointer?) -> LockingNodePointer? {
    var next = first
    while let node = next, node.pointee.stamp > start { next = node.pointee.next }
    return next
  }

  private func collectCells(of node: LockingNodePointer, _ phase: UInt8) {
    var next = node.pointee.firstCell
    while let cell = next {
      append(cell, phase)
      next = cell.links.pointee.next
    }
  }

  private func append(_ cell: LockingCellPointer, _ phase: UInt8) {
    guard
      cell.pointee.key == key, cell.pointee.modes & phase != 0, cell.pointee.stamp <= start
    else { return }
    if count == capacity { grow() }
    buffer[count] = UnsafeMutableRawPointer(cell)
    objects[count] = treeObject(of: UnsafeMutableRawPointer(cell))
    count += 1
    cell.links.pointee.pins += 1
  }

  private func grow() {
    buffer = grown(buffer)
    objects = grown(objects)
    capacity *= 2
  }

  private func grown<T>(_ old: UnsafeMutablePointer<T>) -> UnsafeMutablePointer<T> {
    let larger = UnsafeMutablePointer<T>.allocate(capacity: capacity * 2)
    larger.moveInitialize(from: old, count: count)
    old.deallocate()
    return larger
  }
}
