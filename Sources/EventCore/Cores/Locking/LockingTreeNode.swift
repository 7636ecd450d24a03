// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

// The memory of the locking core's trees: two kinds of block in intrusive lists, all of it touched
// with the tree's lock held but for what the fields say.

typealias LockingNodePointer = UnsafeMutablePointer<LockingTreeNode>
typealias LockingCellPointer = UnsafeMutablePointer<LockingTreeCell>

/// A node.
struct LockingTreeNode {
  /// The `EventNode`. Constant.
  let context: UnsafeMutableRawPointer
  var parent: LockingNodePointer?
  var firstChild: LockingNodePointer?
  var lastChild: LockingNodePointer?
  var next: LockingNodePointer?
  var previous: LockingNodePointer?
  /// When it was attached where it is.
  var stamp: UInt64 = 0
  var firstCell: LockingCellPointer?
  var lastCell: LockingCellPointer?
  var hasEnded = false
  /// What the last walk to look has found: twice its round, and 1 if the node was under its top.
  var found: UInt64 = 0
  /// The node itself until it ends, its cells, the walks that began here or at a node below.
  var references = 1

  init(_ context: UnsafeMutableRawPointer) {
    self.context = context
  }
}

/// A registered handler. The first three fields lie as `TreeLayout.swift` says. All but the state
/// is constant, since others read that without the lock; what changes under the lock is beside it.
struct LockingTreeCell: ~Copyable {
  /// 0 while the handler is alive. Written with the lock held, read by walks.
  let state = Atomic<UInt32>(0)
  let modes: UInt8
  /// A retained `TreeHandler`, until the cell is neither listed nor pinned.
  let object: UnsafeMutableRawPointer
  let node: LockingNodePointer
  let key: UInt
  /// When it was added.
  let stamp: UInt64
  let links: UnsafeMutablePointer<Links>

  struct Links {
    var next: LockingCellPointer?
    var previous: LockingCellPointer?
    var isListed = true
    /// How many walks have it.
    var pins = 0
    /// Whether a handle will ask for it.
    var isHandled = true
  }

  init(
    _ node: LockingNodePointer, key: UInt, modes: UInt8, object: UnsafeMutableRawPointer,
    stamp: UInt64
  ) {
    self.node = node
    self.key = key
    self.modes = modes
    self.object = object
    self.stamp = stamp
    links = .allocate(capacity: 1)
    links.initialize(to: Links())
  }

  deinit {
    links.deinitialize(count: 1)
    links.deallocate()
  }

  var isAlive: Bool {
    // Relaxed: the lock orders the writers.
    state.load(ordering: .relaxed) == 0
  }
}

extension UnsafeMutablePointer where Pointee == LockingTreeCell {
  /// What changes under the lock. Read by itself: as a part of a longer access it would count as a
  /// change of the cell, which others read meanwhile.
  var links: UnsafeMutablePointer<LockingTreeCell.Links> {
    let links = pointee.links
    return links
  }
}

extension LockingTreeNode {
  /// Puts a node behind the children of another.
  static func link(_ node: LockingNodePointer, under parent: LockingNodePointer, stamp: UInt64) {
    node.pointee.parent = parent
    node.pointee.previous = parent.pointee.lastChild
    node.pointee.next = nil
    node.pointee.stamp = stamp
    if let last = parent.pointee.lastChild {
      last.pointee.next = node
    } else {
      parent.pointee.firstChild = node
    }
    parent.pointee.lastChild = node
  }

  /// Takes a node from its parent. Returns that one.
  static func unlink(_ node: LockingNodePointer) -> LockingNodePointer? {
    guard let parent = node.pointee.parent else { return nil }
    if let previous = node.pointee.previous {
      previous.pointee.next = node.pointee.next
    } else {
      parent.pointee.firstChild = node.pointee.next
    }
    if let next = node.pointee.next {
      next.pointee.previous = node.pointee.previous
    } else {
      parent.pointee.lastChild = node.pointee.previous
    }
    node.pointee.parent = nil
    node.pointee.next = nil
    node.pointee.previous = nil
    return parent
  }

  static func append(_ cell: LockingCellPointer, to node: LockingNodePointer) {
    cell.links.pointee.previous = node.pointee.lastCell
    if let last = node.pointee.lastCell {
      last.links.pointee.next = cell
    } else {
      node.pointee.firstCell = cell
    }
    node.pointee.lastCell = cell
    node.pointee.references += 1
  }

  static func take(_ cell: LockingCellPointer, from node: LockingNodePointer) {
    if let previous = cell.links.pointee.previous {
      previous.links.pointee.next = cell.links.pointee.next
    } else {
      node.pointee.firstCell = cell.links.pointee.next
    }
    if let next = cell.links.pointee.next {
      next.links.pointee.previous = cell.links.pointee.previous
    } else {
      node.pointee.lastCell = cell.links.pointee.previous
    }
    cell.links.pointee.isListed = false
  }

  /// One reference less; frees the memory after the last.
  static func letGo(_ node: LockingNodePointer) {
    node.pointee.references -= 1
    guard node.pointee.references == 0 else { return }
    node.deinitialize(count: 1)
    node.deallocate()
  }
}
