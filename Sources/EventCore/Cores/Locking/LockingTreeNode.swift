// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

// The memory of the locking core's trees: nodes and registrations, each in the list of its parent or of its
// node. All of it is touched with the trees' lock held, but for a registration's face and the context of a
// node, which are constant.

typealias LockingNodePointer = UnsafeMutablePointer<LockingTreeNode>
typealias LockingRegistrationPointer = UnsafeMutablePointer<LockingRegistration>

/// A block that is in one of the lists.
protocol LockingLinked {
  var links: LockingLinks<Self> { get set }
}

struct LockingLinks<Block> {
  var next: UnsafeMutablePointer<Block>?
  var previous: UnsafeMutablePointer<Block>?
}

/// Blocks in the order in which they were appended, which is also that of their stamps.
struct LockingList<Block: LockingLinked> {
  private(set) var first: UnsafeMutablePointer<Block>?
  private(set) var last: UnsafeMutablePointer<Block>?

  mutating func append(_ block: UnsafeMutablePointer<Block>) {
    block.pointee.links = LockingLinks(next: nil, previous: last)
    if let last { last.pointee.links.next = block } else { first = block }
    last = block
  }

  mutating func remove(_ block: UnsafeMutablePointer<Block>) {
    let (next, previous) = (block.pointee.links.next, block.pointee.links.previous)
    block.pointee.links = LockingLinks()
    if let previous { previous.pointee.links.next = next } else { first = next }
    if let next { next.pointee.links.previous = previous } else { last = previous }
  }
}

/// A node.
struct LockingTreeNode: LockingLinked {
  // Not the context first: ThreadSanitizer takes each change of a field for one of the first, too.
  var links = LockingLinks<LockingTreeNode>()
  var parent: LockingNodePointer?
  var children = LockingList<LockingTreeNode>()
  var registrations = LockingList<LockingRegistration>()
  /// When it was attached where it is.
  var stamp: UInt64 = 0
  var hasEnded = false
  /// The node itself until it ends, its registrations, and the walks that have it as their top.
  var references = 1
  /// The `EventNode`.
  let context: UnsafeMutableRawPointer

  init(_ context: UnsafeMutableRawPointer) {
    self.context = context
  }

  /// One reference less; frees the memory after the last.
  static func letGo(_ node: LockingNodePointer) {
    node.pointee.references -= 1
    guard node.pointee.references == 0 else { return }
    node.deinitialize(count: 1)
    node.deallocate()
  }
}

/// What others than the lock's owner read of a registration: as `TreeLayout.swift` says, and its node. The
/// module knows a registration by the address of its face; what changes under the lock lies behind it.
struct LockingTreeFace: ~Copyable {
  /// 0 while the handler is alive. Written with the lock held, read by walks.
  let state = Atomic<UInt32>(0)
  let modes: UInt8
  /// A retained `TreeHandler`, as long as the registration is in use.
  let object: UnsafeMutableRawPointer
  let node: LockingNodePointer
}

/// A registered handler, behind its face.
struct LockingRegistration: LockingLinked {
  var links = LockingLinks<LockingRegistration>()
  let key: UInt
  /// When it was added.
  let stamp: UInt64
  /// Those of the node's list, while the handler is alive, and of each walk that is to call it.
  var uses = 1
  /// Whether a handle will ask for it.
  var isHandled = true
}

extension UnsafeMutablePointer where Pointee == LockingRegistration {
  /// Makes a registration, which is a reference to its node.
  static func make(
    _ node: LockingNodePointer, key: UInt, modes: UInt8, object: UnsafeMutableRawPointer,
    stamp: UInt64
  ) -> LockingRegistrationPointer {
    let size = MemoryLayout<LockingTreeFace>.stride
    let face = UnsafeMutableRawPointer.allocate(
      byteCount: size + MemoryLayout<LockingRegistration>.size, alignment: 16)
    face.bindMemory(to: LockingTreeFace.self, capacity: 1)
      .initialize(to: LockingTreeFace(modes: modes, object: object, node: node))
    let registration = (face + size).bindMemory(to: LockingRegistration.self, capacity: 1)
    registration.initialize(to: LockingRegistration(key: key, stamp: stamp))
    node.pointee.references += 1
    return registration
  }

  /// The registration that the module knows by an address.
  init(face: UnsafeMutableRawPointer) {
    self = (face + MemoryLayout<LockingTreeFace>.stride)
      .assumingMemoryBound(to: LockingRegistration.self)
  }

  var face: UnsafeMutablePointer<LockingTreeFace> {
    (UnsafeMutableRawPointer(self) - MemoryLayout<LockingTreeFace>.stride)
      .assumingMemoryBound(to: LockingTreeFace.self)
  }

  func free() {
    let face = face
    deinitialize(count: 1)
    face.deinitialize(count: 1)
    face.deallocate()
  }
}
