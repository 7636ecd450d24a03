// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What the locking core knows about a walk. Used again by later walks, with its buffers.
///
/// All of it is touched with the tree's lock held, but for the head and the cells in the first
/// buffer, which the walking thread reads without.
///
/// Propagating collects a chunk at a time, and goes on where it stood. That holds as long as nobody
/// is taken from his place: whoever does that has every walk collect first what it has left
/// (`collectRest`). So a walk finds what one would that had collected everything at the beginning,
/// and one that is consumed early has not.
final class LockingTreeWalk {
  /// How many cells are collected at a time, about: up to the last of a node.
  private static let chunkSize = 64

  private var buffer = LockingCellBuffer()
  /// What was collected behind the chunk, because trees changed.
  private var rest = LockingCellBuffer()
  /// The cells to call now, in the buffer.
  private var chunk = 0..<0
  /// Those behind them in the buffer: of the next phase, or what was the rest.
  private var following = 0..<0
  private var source: LockingNodePointer!
  /// Where propagation begins: the root when the walk began, or the node itself.
  private(set) var top: LockingNodePointer!
  /// The node whose cells were collected last, while propagation has more to collect: there as long
  /// as nobody is taken from his place.
  private var position: LockingNodePointer?
  private var key: UInt = 0
  /// What was added or attached later is for the next walk.
  private var start: UInt64 = 0
  /// The phases that are still to come.
  private var phases: UInt8 = 0
  private var phase: UInt8 = 0
  private(set) var thread: UInt = 0
  /// Never what was seen: the state of each cell is looked at, as `LockingTree.mayCall` does.
  private let lastRemoval: UnsafeMutablePointer<Atomic<UInt64>>
  /// What the walking thread reads.
  let head: UnsafeMutablePointer<TreeWalk>

  init() {
    lastRemoval = .allocate(capacity: 1)
    lastRemoval.initialize(to: Atomic(.max))
    head = .allocate(capacity: 1)
    head.initialize(to: TreeWalk(lastRemoval: lastRemoval))
    // Asked always: it looks for changes itself.
    head.pointee.attention = 1
    head.pointee.own = Unmanaged.passUnretained(self)
  }

  deinit {
    head.deallocate()
    lastRemoval.deinitialize(count: 1)
    lastRemoval.deallocate()
  }

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
    position = nil
    chunk = 0..<0
    following = 0..<0
    buffer.removeAll()
    rest.removeAll()
  }

  /// Takes the cells back that were to be called. `unused` is told those that nobody needs any
  /// more. With `all`, those that were to follow, too.
  func unpin(all: Bool, _ unused: (LockingCellPointer) -> Void) {
    buffer.unpin(chunk.lowerBound..<(all ? buffer.count : chunk.upperBound), unused)
    if all { rest.unpin(0..<rest.count, unused) }
  }

  enum Collected {
    case nothing
    /// Cells that were found with others before them, or before a change.
    case earlier
    /// Cells as the trees are now.
    case now
  }

  /// Goes on to the next cells, after `unpin`. They are pinned.
  func collect() -> Collected {
    if phases & (EventPhase.capture.rawValue | EventPhase.raise.rawValue) != 0 {
      // Both at once: what the handlers of the one do to the route is looked at before each call.
      if take(.capture) { collectRouteDown() }
      let captured = buffer.count
      if take(.raise) { collectRouteUp() }
      chunk = 0..<captured
      following = captured..<buffer.count
      phase = EventPhase.capture.rawValue
      if !chunk.isEmpty { return .now }
    }
    if !following.isEmpty, phase == EventPhase.capture.rawValue {
      chunk = following
      following = 0..<0
      phase = EventPhase.raise.rawValue
      return chunk.lowerBound == 0 ? .now : .earlier
    }
    phase = EventPhase.propagate.rawValue
    if following.isEmpty {
      buffer.removeAll()
      if rest.count == 0 {
        collectTree(into: &buffer, until: Self.chunkSize)
        chunk = 0..<buffer.count
        return chunk.isEmpty ? .nothing : .now
      }
      swap(&buffer, &rest)
      following = 0..<buffer.count
    }
    // As many as otherwise: so many are looked at again after a change.
    chunk = following.prefix(Self.chunkSize)
    following = chunk.upperBound..<following.upperBound
    return .earlier
  }

  /// A node is about to be taken from its place: collects what propagation has left.
  func collectRest() {
    // A walk that has not come to propagating goes by what it will find then.
    guard position != nil else { return }
    collectTree(into: &rest, until: .max)
  }

  /// Shows the collected cells to the walking thread.
  func show() {
    head.pointee.cells = buffer.cells + chunk.lowerBound
    head.pointee.objects = buffer.objects + chunk.lowerBound
    head.pointee.isCut = buffer.isCut + chunk.lowerBound
    head.pointee.count = UInt32(chunk.count)
    head.pointee.phase = UInt32(phase)
  }

  private func take(_ phase: EventPhase) -> Bool {
    defer { phases &= ~phase.rawValue }
    return phases & phase.rawValue != 0
  }

  /// Looks, after trees have changed, which of the cells from `index` of the chunk on are still
  /// where they were. `round`: another one each time.
  ///
  /// O(cells of the chunk, and depth): what is found of a node is noted there.
  func lookAgain(from index: Int, round: UInt64) {
    for place in (chunk.lowerBound + index)..<chunk.upperBound {
      let cell = buffer.cells[place].assumingMemoryBound(to: LockingTreeCell.self)
      buffer.isCut[place] = !reaches(cell.pointee.node, round)
    }
  }

  /// Whether a node is still under the top by what was there when the walk began.
  private func reaches(_ node: LockingNodePointer, _ round: UInt64) -> Bool {
    var above: LockingNodePointer? = node
    var isReached = false
    while let one = above, one.pointee.found >> 1 != round {
      if one == top {
        isReached = !top.pointee.hasEnded
        break
      }
      above = one.pointee.stamp <= start ? one.pointee.parent : nil
    }
    let end = above
    if let end, end.pointee.found >> 1 == round { isReached = end.pointee.found & 1 == 1 }
    above = node
    while let one = above, one != end {
      one.pointee.found = round << 1 | (isReached ? 1 : 0)
      // Nil where the way was cut, and only there: `end` is nil then, too.
      above = one.pointee.stamp <= start ? one.pointee.parent : nil
    }
    return isReached
  }

  // MARK: Collecting

  private func collectRouteUp() {
    forEachOfRoute { collectCells(of: $0, EventPhase.raise.rawValue, into: &buffer) }
  }

  private func collectRouteDown() {
    // Upwards and each node's cells backwards, then turned round.
    forEachOfRoute { node in
      var next = node.pointee.lastCell
      while let cell = next {
        if isMeant(cell, EventPhase.capture.rawValue) { buffer.append(cell) }
        next = cell.links.pointee.previous
      }
    }
    buffer.reverse()
  }

  /// The nodes from the source to the root, when the walk begins.
  private func forEachOfRoute(_ body: (LockingNodePointer) -> Void) {
    var next: LockingNodePointer? = source
    while let node = next {
      body(node)
      next = node.pointee.parent
    }
  }

  /// Goes on from the position, or begins at the top, until there are so many cells.
  private func collectTree(into cells: inout LockingCellBuffer, until limit: Int) {
    var next: LockingNodePointer?
    if let position {
      next = successor(of: position)
    } else if take(.propagate), !top.pointee.hasEnded {
      next = top
    }
    while let node = next {
      collectCells(of: node, EventPhase.propagate.rawValue, into: &cells)
      if cells.count >= limit {
        position = node
        return
      }
      next = successor(of: node)
    }
    position = nil
  }

  /// What comes after a node, parents before children; nil after the last.
  private func successor(of node: LockingNodePointer) -> LockingNodePointer? {
    if let child = firstThen(node.pointee.firstChild) { return child }
    var node = node
    while node != top {
      if let sibling = firstThen(node.pointee.next) { return sibling }
      // Not nil: the walk came down this way, and nobody was taken from his place since.
      node = node.pointee.parent.unsafelyUnwrapped
    }
    return nil
  }

  /// The first of these siblings that was there when the walk began.
  private func firstThen(_ first: LockingNodePointer?) -> LockingNodePointer? {
    var next = first
    while let node = next, node.pointee.stamp > start { next = node.pointee.next }
    return next
  }

  private func collectCells(
    of node: LockingNodePointer, _ phase: UInt8, into cells: inout LockingCellBuffer
  ) {
    var next = node.pointee.firstCell
    while let cell = next {
      if isMeant(cell, phase) { cells.append(cell) }
      next = cell.links.pointee.next
    }
  }

  private func isMeant(_ cell: LockingCellPointer, _ phase: UInt8) -> Bool {
    cell.pointee.key == key && cell.pointee.modes & phase != 0 && cell.pointee.stamp <= start
  }
}
