// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What the locking core knows about a walk. Used again by later walks, with its memory.
///
/// A walk collects the registrations of a chunk with the trees' lock held, and its thread calls them without.
/// Between two chunks it remembers the node that is next. That one is in its place as long as
/// nobody takes it or a node above it from there, and whoever does tells all walks first
/// (`willTake`): what they then pass over has left the tree. So a walk finds what was there when it
/// began and has stayed, holds nothing of what is far from it, and costs nobody more than the way
/// from its next node to its top.
///
/// All of it is touched with the lock held, but for the head, and the memory that this points to.
final class LockingTreeWalk {
  /// How many registrations are collected at a time, about: up to the last of a node. Fewer at first, since
  /// an event may be consumed by the first of them.
  private static let (firstChunk, chunk) = (16, 64)
  /// What `TreeWalk.attention` is: the core is asked before each call, since the walk has to publish
  /// the call in its own way,
  static let asks: UInt8 = 1
  /// and looks under the lock at the rest of the chunk, since this thread has changed a tree, or
  /// somebody waits for a call.
  static let looks: UInt8 = 2
  /// Never what was seen: `LockingTree.mayCall` looks at the state of each registration.
  // An atomic at an address that never changes, made once and never freed: any thread may read it.
  nonisolated(unsafe) private static let lastRemoval = {
    let place = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: 1)
    place.initialize(to: Atomic(.max))
    return place
  }()

  /// What the walking thread reads. Never freed, as the walk itself.
  let head: UnsafeMutablePointer<TreeWalk>
  /// Registrations in the first half, their objects in the second. The registrations are pinned: each is in use once
  /// more.
  private var memory: UnsafeMutablePointer<UnsafeMutableRawPointer>
  private var capacity = 32
  private(set) var count = 0
  /// Where propagation begins: the root when the walk began, or the node itself.
  private(set) var top: LockingNodePointer!
  /// The lowest node that is left of the route to the top, while that is to be collected.
  private var source: LockingNodePointer?
  /// The node that propagation comes to next.
  private var next: LockingNodePointer?
  private var key: UInt = 0
  /// What was added or attached later is for the next walk.
  private var start: UInt64 = 0
  /// The phases that are still to come.
  private var phases: UInt8 = 0
  private(set) var thread: UInt = 0

  init() {
    memory = .allocate(capacity: 2 * capacity)
    head = .allocate(capacity: 1)
    head.initialize(to: TreeWalk(lastRemoval: Self.lastRemoval))
    head.pointee.own = Unmanaged.passUnretained(self)
  }

  func begin(_ source: LockingNodePointer, key: UInt, phases: UInt8, start: UInt64) {
    (self.key, self.phases, self.start) = (key, phases, start)
    thread = currentThreadNumber()
    // Whoever raises holds the source.
    self.source = source
    var top = source
    if phases & TreePhases.below == 0 {
      while let above = top.pointee.parent { top = above }
    }
    self.top = top
    top.pointee.references += 1
  }

  /// After the last chunk was taken back.
  func end() {
    LockingTreeNode.letGo(top)
    (top, source, next) = (nil, nil, nil)
  }

  /// Goes on to the next registrations. False if there are none.
  func fill() -> Bool {
    let phase = collect()
    // Relaxed: this thread reads it, and others write it under the lock.
    treeAttention(of: head).pointee.store(Self.asks, ordering: .relaxed)
    head.pointee.registrations = memory
    head.pointee.objects = UnsafeMutableRawPointer(memory + capacity)
      .assumingMemoryBound(to: UnsafeRawPointer.self)
    head.pointee.count = UInt32(count)
    head.pointee.phase = UInt32(phase.rawValue)
    return count > 0
  }

  /// Takes the chunk back. `release` is told its registrations.
  func unpin(_ release: (LockingRegistrationPointer) -> Void) {
    for index in 0..<count { release(LockingRegistrationPointer(face: memory[index])) }
    count = 0
  }

  // MARK: Changes

  /// A node is about to be taken from its parent by a thread.
  func willTake(_ node: LockingNodePointer, from parent: LockingNodePointer, by thread: UInt) {
    if thread == self.thread {
      // Relaxed: that thread alone reads it.
      treeAttention(of: head).pointee.store(Self.looks, ordering: .relaxed)
    }
    if let source, isBelow(source, node) { self.source = parent }
    if let next, isBelow(next, node) { self.next = successor(behind: node) }
  }

  /// Whether a node, which is under the top, is another one or below it.
  private func isBelow(_ node: LockingNodePointer, _ other: LockingNodePointer) -> Bool {
    var node = node
    while node != top, node != other { node = node.pointee.parent.unsafelyUnwrapped }
    return node != top
  }

  /// Whether a node is still under the top by what was there when the walk began.
  func reaches(_ node: LockingNodePointer) -> Bool {
    var node = node
    while node != top {
      guard node.pointee.stamp <= start, let above = node.pointee.parent else { return false }
      node = above
    }
    return true
  }

  // MARK: Collecting

  /// The registrations of the next phase that has any, which is returned.
  private func collect() -> EventPhase {
    if take(.capture) {
      // Upwards and each node's registrations backwards, then turned round.
      forEachOfRoute { node in
        var registration = node.pointee.registrations.last
        while let one = registration {
          append(one, for: .capture)
          registration = one.pointee.links.previous
        }
      }
      reverse(memory)
      reverse(memory + capacity)
      if count > 0 { return .capture }
    }
    if take(.raise) {
      forEachOfRoute { append(registrationsOf: $0, for: .raise) }
      if count > 0 { return .raise }
    }
    source = nil
    var limit = Self.chunk
    if take(.propagate) { (next, limit) = (top, Self.firstChunk) }
    while count < limit, let node = next {
      append(registrationsOf: node, for: .propagate)
      next = ifEarly(node.pointee.children.first) ?? successor(behind: node)
    }
    return .propagate
  }

  private func reverse(_ start: UnsafeMutablePointer<UnsafeMutableRawPointer>) {
    var half = UnsafeMutableBufferPointer(start: start, count: count)
    half.reverse()
  }

  private func take(_ phase: EventPhase) -> Bool {
    defer { phases &= ~phase.rawValue }
    return phases & phase.rawValue != 0
  }

  /// The nodes from the source to the top.
  private func forEachOfRoute(_ body: (LockingNodePointer) -> Void) {
    var next = source
    while let node = next {
      body(node)
      next = node == top ? nil : node.pointee.parent
    }
  }

  /// What propagation comes to after a node and all that is below it; nil after the last.
  private func successor(behind node: LockingNodePointer) -> LockingNodePointer? {
    var node = node
    while node != top {
      if let sibling = ifEarly(node.pointee.links.next) { return sibling }
      node = node.pointee.parent.unsafelyUnwrapped
    }
    return nil
  }

  /// A node, if it was there when the walk began. Those behind it came later than it.
  private func ifEarly(_ node: LockingNodePointer?) -> LockingNodePointer? {
    node.flatMap { $0.pointee.stamp <= start ? $0 : nil }
  }

  private func append(registrationsOf node: LockingNodePointer, for phase: EventPhase) {
    var registration = node.pointee.registrations.first
    while let one = registration {
      append(one, for: phase)
      registration = one.pointee.links.next
    }
  }

  /// Appends a registration, if this event is for it.
  private func append(_ registration: LockingRegistrationPointer, for phase: EventPhase) {
    let face = registration.face
    guard registration.pointee.key == key, registration.pointee.stamp <= start,
      face.pointee.modes & phase.rawValue != 0
    else { return }
    if count == capacity { grow() }
    memory[count] = UnsafeMutableRawPointer(face)
    memory[capacity + count] = face.pointee.object
    count += 1
    registration.pointee.uses += 1
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
