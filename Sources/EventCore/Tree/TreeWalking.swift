// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Calls the handlers of a raised event, one after the other, on the calling thread.
///
/// `phases`: those of an `EventRaiseScope`, or `TreePhases.below`.
@inlinable
func walkTree<E: Eventable>(_ event: E, from source: EventNode, phases: UInt8) -> EventOutcome {
  var outcome = EventOutcome()
  var walk = TreeWalk()
  let core = source.core
  withUnsafeMutablePointer(to: &walk) { walk in
    guard core.begin(walk, source.node, key: eventKey(E.self), phases: phases) else { return }
    // After `.stopAfterThisNode`: the node whose other handlers of the phase are still called.
    var last: UnsafeMutableRawPointer?
    var lastPhase: UInt8 = 0
    repeat {
      let cells = walk.pointee.cells.unsafelyUnwrapped
      for index in 0..<walk.pointee.count {
        let cell = cells[index]
        if last != nil, last != treeNode(of: cell) || lastPhase != walk.pointee.phase {
          return core.end(walk)
        }
        guard mayCall(cell, walk, core) else { continue }
        outcome.handlerCount &+= 1
        // The object is of this class, since the cell has the key of E. It lives as long as the walk
        // has the cell.
        let decision = Unmanaged<TypedTreeHandler<E>>.fromOpaque(treeObject(of: cell))
          ._withUnsafeGuaranteedRef { handler -> EventDecision in
            let modes = treeModes(of: cell)
            guard modes & (TreeModes.choice | TreeModes.consume) != 0 else {
              handler.plain(event)
              return .continue
            }
            guard modes & TreeModes.choice != 0 else {
              handler.plain(event)
              return .consume
            }
            return handler.choosing(EventNodeContext(event, source, walk, cell))
          }
        guard decision != .continue else { continue }
        outcome.consumer = core.identifier(of: cell)
        guard decision != .consume else { return core.end(walk) }
        last = treeNode(of: cell)
        lastPhase = walk.pointee.phase
      }
    } while core.next(walk)
  }
  return outcome
}

/// Says that a cell is being called, and then looks whether it may be: whoever removes it and waits goes
/// the other way.
@inlinable
@inline(__always)
func mayCall(
  _ cell: UnsafeMutableRawPointer, _ walk: UnsafeMutablePointer<TreeWalk>, _ core: any TreeCore
) -> Bool {
  let current = treeCurrent(of: walk)
  if walk.pointee.fences {
    current.pointee.store(UInt(bitPattern: cell), ordering: .sequentiallyConsistent)
  } else {
    // Releasing: what the handler before it did, before a waiter sees that it is another's turn. The
    // waiter has a fence made on this thread.
    current.pointee.store(UInt(bitPattern: cell), ordering: .releasing)
  }
  // Sequentially consistent, which on x86 is a plain load: the second half of "publish, then look".
  let state = treeState(of: cell).pointee.load(ordering: .sequentiallyConsistent)
  // Acquiring: pairs with the core's write, whose changes `mayCall` then finds.
  let seen = treeWatched(by: walk).pointee.load(ordering: .acquiring)
  if state == 0, seen == walk.pointee.seen { return true }
  return state == 0 && core.mayCall(walk, cell)
}
