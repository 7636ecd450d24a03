// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What the locking core knows about a walk. Later walks use it again, with its memory.
///
/// A walk collects some registrations with the trees' lock held, which are its chunk, and its thread calls
/// them without the lock. Between two chunks the walk remembers the node that comes next. That node stays in
/// its place as long as nobody takes it, or a node above it, out of the tree; and whoever does so tells all
/// walks first (`willDetach`). What they then pass over has left the tree. So a walk finds what was there
/// when it began and has stayed, and a change costs only the way from the next node of each walk to its top.
///
/// All of it is touched with the lock held, except `head` and the memory that `head` points to.
final class LockingTreeWalk {
  /// How many registrations are collected at a time, and then the rest of their node. The first chunk is
  /// smaller, since an event may be consumed by one of its handlers.
  private static let (firstChunk, chunk) = (16, 64)
  /// The values of `TreeWalk.attention`. The core is always asked before a call. With `asks` it publishes the
  /// call and looks whether the handler has ended. With `looks` it also takes the lock: the walking thread
  /// has detached a node, or another thread waits for the end of a call.
  static let (asks, looks) = (UInt8(1), UInt8(2))

  /// What the walking thread reads. Like the walk itself, it is never freed.
  let head: UnsafeMutablePointer<TreeWalk>
  /// The chunk: registrations in the first half, and their objects in the second. Each registration is in use
  /// once more.
  private var memory: UnsafeMutablePointer<UnsafeMutableRawPointer>
  private var capacity = 32
  private var count = 0
  /// Where propagation begins: the root when the walk began, or the source itself.
  private(set) var top: LockingNodePointer!
  /// Where the route to the top begins, as long as the route is still to be collected.
  private var source: LockingNodePointer?
  /// The node that propagation collects next.
  private var next: LockingNodePointer?
  private var key: UInt = 0
  /// The stamp when the walk began. What is newer is for later walks.
  private var start: UInt64 = 0
  /// The phases that are still to come.
  private var phases: UInt8 = 0
  private(set) var thread: UInt = 0

  init() {
    memory = .allocate(capacity: 2 * capacity)
    head = .allocate(capacity: 1)
    // Never equal to `TreeWalk.seen`, so that the state of each registration is read. Never freed, as the walk.
    let lastRemoval = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: 1)
    lastRemoval.initialize(to: Atomic(.max))
    head.initialize(to: TreeWalk(lastRemoval: lastRemoval))
    head.pointee.own = Unmanaged.passUnretained(self)
  }

  func begin(_ source: LockingNodePointer, key: UInt, phases: UInt8, start: UInt64) {
    (self.key, self.phases, self.start) = (key, phases, start)
    thread = currentThreadNumber()
    // Whoever raises the event keeps the source.
    self.source = source
    top = source
    while phases & TreePhases.below == 0, let above = top.pointee.parent { top = above }
    top.pointee.references += 1
  }

  /// After the last chunk was released.
  func end() {
    LockingTreeNode.release(top)
    (top, source, next) = (nil, nil, nil)
  }

  /// Collects the next chunk. False if nothing is left.
  func fill() -> Bool {
    let phase = collect()
    // Relaxed: only this thread reads it, and others write it under the lock.
    treeAttention(of: head).pointee.store(Self.asks, ordering: .relaxed)
    head.pointee.registrations = memory
    head.pointee.objects = UnsafeMutableRawPointer(memory + capacity)
      .assumingMemoryBound(to: UnsafeRawPointer.self)
    head.pointee.count = UInt32(count)
    head.pointee.phase = UInt32(phase.rawValue)
    return count > 0
  }

  /// Gives the registrations of the chunk to `release`.
  func releaseChunk(_ release: (LockingRegistrationPointer) -> Void) {
    for index in 0..<count { release(LockingRegistrationPointer(face: memory[index])) }
    count = 0
  }

  // MARK: Changes

  /// A thread is about to take a node from its parent.
  func willDetach(_ node: LockingNodePointer, from parent: LockingNodePointer, by thread: UInt) {
    if thread == self.thread {
      // Relaxed: only that thread reads it.
      treeAttention(of: head).pointee.store(Self.looks, ordering: .relaxed)
    }
    if let source, isBelow(source, node) { self.source = parent }
    if let next, isBelow(next, node) { self.next = successor(of: node) }
  }

  /// Whether a node under the top is another one or below it.
  private func isBelow(_ node: LockingNodePointer, _ other: LockingNodePointer) -> Bool {
    var node = node
    while node != top, node != other { node = node.pointee.parent.unsafelyUnwrapped }
    return node != top
  }

  /// Whether the nodes from a node up to the top are still there as they were when the walk began.
  func reaches(_ node: LockingNodePointer) -> Bool {
    var node = node
    while node != top {
      guard node.pointee.stamp <= start, let above = node.pointee.parent else { return false }
      node = above
    }
    return true
  }

  // MARK: Collecting

  /// Collects the registrations of the next phase that has any, and returns that phase.
  private func collect() -> EventPhase {
    if collectRoute(.capture) { return .capture }
    if collectRoute(.raise) { return .raise }
    source = nil
    var limit = Self.chunk
    if take(.propagate) { (next, limit) = (top, Self.firstChunk) }
    while count < limit, let node = next {
      append(registrationsOf: node, .propagate)
      next = ifEarly(node.pointee.children.first) ?? successor(of: node)
    }
    return .propagate
  }

  private func take(_ phase: EventPhase) -> Bool {
    defer { phases &= ~phase.rawValue }
    return phases & phase.rawValue != 0
  }

  /// Collects from the nodes of the route: upwards, or for capturing downwards. False if that gives nothing.
  private func collectRoute(_ phase: EventPhase) -> Bool {
    guard take(phase) else { return false }
    var next = source
    while let node = next {
      append(registrationsOf: node, phase)
      next = node == top ? nil : node.pointee.parent
    }
    if phase == .capture {
      for start in [memory, memory + capacity] {
        var half = UnsafeMutableBufferPointer(start: start, count: count)
        half.reverse()
      }
    }
    return count > 0
  }

  /// The node that propagation comes to after a node and all nodes below it; nil after the last.
  private func successor(of node: LockingNodePointer) -> LockingNodePointer? {
    var node = node
    while node != top {
      if let sibling = ifEarly(node.pointee.next) { return sibling }
      node = node.pointee.parent.unsafelyUnwrapped
    }
    return nil
  }

  /// A node, if it was there when the walk began; otherwise its later siblings were not either.
  private func ifEarly(_ node: LockingNodePointer?) -> LockingNodePointer? {
    node.flatMap { $0.pointee.stamp <= start ? $0 : nil }
  }

  /// Appends the registrations of a node that are for this event.
  private func append(registrationsOf node: LockingNodePointer, _ phase: EventPhase) {
    // What captures is collected upwards, and reversed in the end.
    let isBackwards = phase == .capture
    let list = node.pointee.registrations
    var next = isBackwards ? list.last : list.first
    while let one = next {
      next = isBackwards ? one.pointee.previous : one.pointee.next
      guard one.pointee.key == key, one.pointee.stamp <= start,
        one.pointee.face.modes & phase.rawValue != 0
      else { continue }
      if count == capacity { grow() }
      memory[count] = one.face
      memory[capacity + count] = one.pointee.face.object
      count += 1
      one.pointee.uses += 1
    }
  }

  private func grow() {
    let larger = UnsafeMutablePointer<UnsafeMutableRawPointer>.allocate(capacity: 4 * capacity)
    larger.moveInitialize(from: memory, count: count)
    (larger + 2 * capacity).moveInitialize(from: memory + capacity, count: count)
    memory.deallocate()
    memory = larger
    capacity *= 2
  }
}
