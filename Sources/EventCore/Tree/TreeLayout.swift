// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

// What both cores lay out alike, so that one loop serves both: the first bytes of a registration (one
// registered handler), and those of a walk. The C core asserts them where it declares its
// structures, TreeLayoutTests the walk of this file.
//
// | Offset | Of a registration |
// |---|---|
// | 0 | UInt32, 0 while the handler is alive. Written by the core under its lock, read by walks |
// | 4 | UInt8, the bits of a `CaptureMode` and of `TreeModes`. Constant |
// | 8 | the `TreeHandler`, which lives as long as a walk has the registration. Constant |

/// A raise on its way, in memory of the core's.
@usableFromInline
struct TreeWalk {
  /// The registrations to call now, which are there until the next `next` or `end`.
  @usableFromInline var registrations: UnsafeMutablePointer<UnsafeMutableRawPointer>?
  /// The `TreeHandler` of each: a call need not read its registration.
  @usableFromInline var objects: UnsafeMutablePointer<UnsafeRawPointer>?
  @usableFromInline var count: UInt32 = 0
  /// The phase of these registrations, as an `EventPhase`.
  @usableFromInline var phase: UInt32 = 0
  /// How far the walk is. Atomic: written by the walking thread, read by those who free registrations.
  @usableFromInline var current: UInt32 = 0
  @usableFromInline var published: UInt32 = 0
  /// The registration whose handler is being called. Atomic: written by the walking thread, read by those
  /// who wait for a handler.
  @usableFromInline var calling: UInt = 0
  /// What `current` is at the first of the registrations.
  @usableFromInline var first: UInt32 = 0
  /// Not 0: the core wants to be asked before each call, since this thread has changed a tree after
  /// the registrations were found, or `calling` needs a fence, or somebody waits for the handler before.
  /// Atomic: written by the walking thread and by those who wait for a handler.
  @usableFromInline var attention: UInt8 = 0
  /// Where the core tells when a handler was removed last, in any tree: written under its lock,
  /// read by walks before each call. As long as it shows `seen`, none has ended since the registrations
  /// were found. The place is constant.
  @usableFromInline var lastRemoval: UnsafeMutablePointer<Atomic<UInt64>>
  /// The walking thread's alone.
  @usableFromInline var seen: UInt64 = 0

  /// The locking core's own. Constant.
  var own: Unmanaged<AnyObject>?

  init(lastRemoval: UnsafeMutablePointer<Atomic<UInt64>>) {
    self.lastRemoval = lastRemoval
  }
}

/// The bits of a registration's modes: those of a `CaptureMode`, and one more.
@usableFromInline
enum TreeModes {
  /// The handler is given a context and decides for itself.
  @usableFromInline static let choice: UInt8 = 16
}

/// The bits of a walk's phases: those of an `EventRaiseScope`, and one more.
@usableFromInline
enum TreePhases {
  /// Propagation from the node itself instead of its root.
  @usableFromInline static let below: UInt8 = 32
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
