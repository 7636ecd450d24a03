// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The memory of the locking core's trees: nodes and registrations, each in the list of its parent or of its
// node. All of it is touched with the trees' lock held, except what is constant, and the state of a
// registration.

typealias LockingNodePointer = UnsafeMutablePointer<LockingTreeNode>
typealias LockingRegistrationPointer = UnsafeMutablePointer<LockingRegistration>

/// A block of memory that is in a list.
protocol LockingLinked {
  var next: UnsafeMutablePointer<Self>? { get set }
  var previous: UnsafeMutablePointer<Self>? { get set }
}

/// Blocks in the order in which they were appended, which is also that of their stamps.
struct LockingList<Block: LockingLinked> {
  private(set) var first: UnsafeMutablePointer<Block>?
  private(set) var last: UnsafeMutablePointer<Block>?

  mutating func append(_ block: UnsafeMutablePointer<Block>) {
    block.pointee.previous = last
    if let last { last.pointee.next = block } else { first = block }
    last = block
  }

  mutating func remove(_ block: UnsafeMutablePointer<Block>) {
    let (next, previous) = (block.pointee.next, block.pointee.previous)
    (block.pointee.next, block.pointee.previous) = (nil, nil)
    if let previous { previous.pointee.next = next } else { first = next }
    if let next { next.pointee.previous = previous } else { last = previous }
  }
}

// ThreadSanitizer takes a change of any field of a structure for a change of its first field, too. So the
// first one is never read without the lock.

struct LockingTreeNode: LockingLinked {
  var next, previous: LockingNodePointer?
  var parent: LockingNodePointer?
  var children = LockingList<LockingTreeNode>()
  var registrations = LockingList<LockingRegistration>()
  /// When it was attached to its parent.
  var stamp: UInt64 = 0
  var hasEnded = false
  /// The node itself until it ends, its registrations, and the walks that have it as their top.
  var references = 1
  /// The `EventNode`.
  let context: UnsafeMutableRawPointer

  /// Removes a reference. The last one frees the node.
  static func release(_ node: LockingNodePointer) {
    node.pointee.references -= 1
    if node.pointee.references == 0 { node.deallocate() }
  }
}

/// A registered handler. The module knows it by the address of its `face`.
struct LockingRegistration: LockingLinked {
  /// Laid out as `TreeLayout.swift` says. Walks read it without the lock.
  struct Face {
    /// 0 while the handler is alive. Atomic; written with the lock held.
    private var state: UInt32 = 0
    let modes: UInt8
    /// A retained `TreeHandler`, as long as the registration is in use.
    let object: UnsafeMutableRawPointer

    init(modes: UInt8, object: UnsafeMutableRawPointer) {
      (self.modes, self.object) = (modes, object)
    }
  }

  var next, previous: LockingRegistrationPointer?
  /// Referred to.
  let node: LockingNodePointer
  let key: UInt
  /// When it was added.
  let stamp: UInt64
  /// The list of its node, while the handler is alive, and each walk that is to call it.
  var uses = 1
  /// Whether a handle may still ask for it.
  var isHandled = true
  // The last field, from which its address is known.
  let face: Face
}

extension UnsafeMutablePointer<LockingRegistration> {
  private static var faceOffset: Int {
    MemoryLayout<LockingRegistration>.size - MemoryLayout<LockingRegistration.Face>.size
  }

  init(face: UnsafeMutableRawPointer) {
    self = (face - Self.faceOffset).assumingMemoryBound(to: LockingRegistration.self)
  }

  var face: UnsafeMutableRawPointer { UnsafeMutableRawPointer(self) + Self.faceOffset }
}
