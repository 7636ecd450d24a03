// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

// The layout that both cores share, so that one loop serves both: the first bytes of a registration (one
// registered handler) and of a walk. The C core asserts it where it declares its structures, and
// TreeLayoutTests asserts the walk of this file.
//
// | Offset | Field of a registration |
// |---|---|
// | 0 | UInt32, 0 while the handler is active. Written by the core under its lock, read by walks |
// | 4 | UInt8, the bits of a `CaptureMode` and of `TreeModes`. Constant |
// | 8 | the `TreeHandler`, which lives as long as a walk has the registration. Constant |

/// The walk of a raised event, in memory of the core.
@usableFromInline
struct TreeWalk {
  /// The registrations to call now, which are valid until `next` or `end`.
  @usableFromInline var registrations: UnsafeMutablePointer<UnsafeMutableRawPointer>?
  /// Their `TreeHandler`s, so that a call need not read the registration.
  @usableFromInline var objects: UnsafeMutablePointer<UnsafeRawPointer>?
  @usableFromInline var count: UInt32 = 0
  /// The phase of these registrations, as an `EventPhase`.
  @usableFromInline var phase: UInt32 = 0
  /// The position of the walk. Atomic: written by the walking thread, read by threads that free
  /// registrations.
  @usableFromInline var current: UInt32 = 0
  @usableFromInline var published: UInt32 = 0
  /// The registration whose handler is being called. Atomic: written by the walking thread, read by threads
  /// that wait for a handler.
  @usableFromInline var calling: UInt = 0
  /// The value of `current` at the first of the registrations.
  @usableFromInline var first: UInt32 = 0
  /// If not 0, the core has to be asked before each call, since this thread has changed a tree after the
  /// registrations were found, or `calling` needs a fence, or a thread waits for the previous handler.
  /// Atomic: written by the walking thread and by threads that wait for a handler.
  @usableFromInline var attention: UInt8 = 0
  /// The bits with which `walkTree` began it. Used by the walking thread alone.
  @usableFromInline var scope: UInt8 = 0
  /// Changes whenever a handler of any tree is removed: written under the core's lock, read by walks before
  /// each call. As long as it is `seen`, no handler has ended since the registrations were found. The
  /// address is constant.
  @usableFromInline var lastRemoval: UnsafeMutablePointer<Atomic<UInt64>>
  /// Used by the walking thread alone.
  @usableFromInline var seen: UInt64 = 0

  /// The `LockingTreeWalk` of the locking core. Constant.
  var own: Unmanaged<AnyObject>?

  init(lastRemoval: UnsafeMutablePointer<Atomic<UInt64>>) {
    self.lastRemoval = lastRemoval
  }
}

/// The bit that the modes of a registration have besides those of a `CaptureMode`.
@usableFromInline
enum TreeModes {
  /// The handler gets a context and decides.
  @usableFromInline static let choice: UInt8 = 16
}

/// The bits that the phases of a walk have besides those of an `EventRaiseScope`.
@usableFromInline
enum TreePhases {
  /// The event propagates from the node itself instead of its root.
  @usableFromInline static let below: UInt8 = 32
  /// The event came from another machine. Nothing to the core.
  static let inward: UInt8 = 64
}

@inlinable
@inline(__always)
func treeState(of registration: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Atomic<UInt32>> {
  registration.assumingMemoryBound(to: Atomic<UInt32>.self)
}

func treeModes(of registration: UnsafeMutableRawPointer) -> UInt8 {
  registration.load(fromByteOffset: 4, as: UInt8.self)
}

func treeObject(of registration: UnsafeMutableRawPointer) -> UnsafeRawPointer {
  registration.load(fromByteOffset: 8, as: UnsafeRawPointer.self)
}

@inlinable
@inline(__always)
func treeCurrent(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutablePointer<Atomic<UInt32>> {
  UnsafeMutableRawPointer(walk).advanced(by: 24).assumingMemoryBound(to: Atomic<UInt32>.self)
}

@inlinable
@inline(__always)
func treeCalling(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutablePointer<Atomic<UInt>> {
  UnsafeMutableRawPointer(walk).advanced(by: 32).assumingMemoryBound(to: Atomic<UInt>.self)
}

@inlinable
@inline(__always)
func treeAttention(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutablePointer<Atomic<UInt8>> {
  UnsafeMutableRawPointer(walk).advanced(by: 44).assumingMemoryBound(to: Atomic<UInt8>.self)
}
