// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Calls the handlers of a raised event, one after the other, on the calling thread.
///
/// `phases`: those of an `EventRaiseScope`, or `TreePhases.below`.
@inlinable
func walkTree<E: Eventable>(_ event: E, from source: EventNode, phases: UInt8) -> EventOutcome {
  let core = source.core
  var outcome = EventOutcome()
  guard let walk = core.begin(source.node, key: eventKey(E.self), phases: phases) else {
    return outcome
  }
  // After `.stopAfterThisNode`: the node whose other handlers of the phase are still called.
  var last: UnsafeMutableRawPointer?
  var lastPhase: UInt32 = 0
  repeat {
    let cells = walk.pointee.cells.unsafelyUnwrapped
    let objects = walk.pointee.objects.unsafelyUnwrapped
    let count = Int(truncatingIfNeeded: walk.pointee.count)
    for index in 0..<count {
      let cell = cells[index]
      if last != nil, last != core.node(of: cell) || lastPhase != walk.pointee.phase {
        core.end(walk)
        return outcome
      }
      guard mayCall(walk, index, cell, core) else { continue }
      outcome.handlerCount &+= 1
      // The object lives as long as the walk has the cell.
      let decision = Unmanaged<TreeHandler>.fromOpaque(objects[index])
        ._withUnsafeGuaranteedRef { handler -> EventDecision in
          // It is of one of these two classes, since the cell has the key of E.
          guard !handler.isChoosing else {
            return unsafeDowncast(handler, to: ChoosingTreeHandler<E>.self)
              .choosing(EventNodeContext(event, source, walk, cell))
          }
          let handler = unsafeDowncast(handler, to: PlainTreeHandler<E>.self)
          handler.plain(event)
          return handler.decision
        }
      if decision == .continue { continue }
      outcome.consumer = core.identifier(of: cell)
      if decision == .consume {
        core.end(walk)
        return outcome
      }
      last = core.node(of: cell)
      lastPhase = walk.pointee.phase
    }
  } while core.next(walk)
  return outcome
}

/// Says that a cell is being called, and then looks whether it may be: whoever removes it and waits
/// goes the other way.
@inlinable
@inline(__always)
func mayCall(
  _ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int, _ cell: UnsafeMutableRawPointer,
  _ core: any TreeCore.Type
) -> Bool {
  // Releasing: what the handler before it did, before others see that the walk is past it.
  treeCurrent(of: walk).pointee.store(
    walk.pointee.first &+ UInt32(truncatingIfNeeded: index), ordering: .releasing)
  // Releasing, as above. Whoever waits has a fence made on this thread, or the walk is careful.
  treeCalling(of: walk).pointee.store(UInt(bitPattern: cell), ordering: .releasing)
  // Sequentially consistent, which on x86 is a plain load: the second half of "publish, then look".
  guard
    walk.pointee.lastRemoval.pointee.load(ordering: .sequentiallyConsistent) == walk.pointee.seen
      || treeState(of: cell).pointee.load(ordering: .sequentiallyConsistent) == 0
  else { return false }
  // Relaxed: the load before it stays before it. A waiter that asks to be told has a barrier made
  // on this thread after that (tree_wait.h).
  return treeAttention(of: walk).pointee.load(ordering: .relaxed) == 0 || core.mayCall(walk, index)
}
