// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Calls the handlers of a raised event, one after the other, on the calling thread.
///
/// `phases`: those of an `EventRaiseScope`, or `TreePhases.below`.
@inlinable
func walkTree<E: Eventable>(_ event: E, from source: EventNode, phases: UInt8) -> EventOutcome {
  let core = source.core
  guard let walk = core.begin(source.node, key: eventKey(E.self), phases: phases) else {
    return EventOutcome()
  }
  var handlerCount = 0
  repeat {
    // Not nil, here and below: the core sets both before it gives a walk away.
    let registrations = walk.pointee.registrations.unsafelyUnwrapped
    let objects = walk.pointee.objects.unsafelyUnwrapped
    for index in 0..<Int(truncatingIfNeeded: walk.pointee.count) {
      let registration = registrations[index]
      guard mayCall(walk, index, registration, core) else { continue }
      guard let decision = callTreeHandler(objects[index], registration, event, source, walk)
      else { continue }
      handlerCount &+= 1
      if decision == .continue { continue }
      // Nothing of what follows is set up before, for the sake of all other calls.
      var outcome = EventOutcome(
        handlerCount: handlerCount, consumer: core.identifier(of: registration))
      if decision == .consume {
        core.end(walk)
      } else {
        finishNode(of: registration, from: index + 1, event, source, walk, &outcome)
      }
      return outcome
    }
  } while core.next(walk)
  return EventOutcome(handlerCount: handlerCount)
}

/// After `.stopAfterThisNode`: calls the other handlers of the node in this phase, from `start` of
/// the chunk on, and ends the walk.
@inlinable
@inline(never)
func finishNode<E: Eventable>(
  of registration: UnsafeMutableRawPointer, from start: Int, _ event: E, _ source: EventNode,
  _ walk: UnsafeMutablePointer<TreeWalk>, _ outcome: inout EventOutcome
) {
  let core = source.core
  let node = core.node(of: registration)
  let phase = walk.pointee.phase
  var start = start
  repeat {
    let registrations = walk.pointee.registrations.unsafelyUnwrapped
    let objects = walk.pointee.objects.unsafelyUnwrapped
    for index in start..<Int(truncatingIfNeeded: walk.pointee.count) {
      let registration = registrations[index]
      guard core.node(of: registration) == node, walk.pointee.phase == phase else {
        core.end(walk)
        return
      }
      guard mayCall(walk, index, registration, core) else { continue }
      guard let decision = callTreeHandler(objects[index], registration, event, source, walk)
      else { continue }
      outcome.handlerCount &+= 1
      if decision == .continue { continue }
      outcome.consumer = core.identifier(of: registration)
      if decision == .consume {
        core.end(walk)
        return
      }
    }
    start = 0
  } while core.next(walk)
}

/// Calls one handler. The object lives as long as the walk has the registration. Nil if there was nobody to
/// call any more.
@inlinable
@inline(__always)
func callTreeHandler<E: Eventable>(
  _ object: UnsafeRawPointer, _ registration: UnsafeMutableRawPointer, _ event: E, _ source: EventNode,
  _ walk: UnsafeMutablePointer<TreeWalk>
) -> EventDecision? {
  Unmanaged<TreeHandler>.fromOpaque(object)._withUnsafeGuaranteedRef { handler in
    // It is of one of these two classes, since the registration has the key of E.
    guard !handler.isChoosing else {
      return unsafeDowncast(handler, to: ChoosingTreeHandler<E>.self)
        .choosing(EventNodeContext(event, source, walk, registration))
    }
    let handler = unsafeDowncast(handler, to: PlainTreeHandler<E>.self)
    handler.plain(event)
    return handler.decision
  }
}

/// Says that a registration is being called, and then looks whether it may be: whoever removes it and waits
/// goes the other way.
@inlinable
@inline(__always)
func mayCall(
  _ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int, _ registration: UnsafeMutableRawPointer,
  _ core: any TreeCore.Type
) -> Bool {
  // Releasing: what the handler before it did, before others see that the walk is past it.
  treeCurrent(of: walk).pointee.store(
    walk.pointee.first &+ UInt32(truncatingIfNeeded: index), ordering: .releasing)
  // Releasing, as above. Whoever waits has a fence made on this thread, or the walk is careful.
  treeCalling(of: walk).pointee.store(UInt(bitPattern: registration), ordering: .releasing)
  // Sequentially consistent, which on x86 is a plain load: the second half of "publish, then look".
  guard
    walk.pointee.lastRemoval.pointee.load(ordering: .sequentiallyConsistent) == walk.pointee.seen
      || treeState(of: registration).pointee.load(ordering: .sequentiallyConsistent) == 0
  else { return false }
  // Relaxed: the load before it stays before it. A waiter that asks to be told has a barrier made
  // on this thread after that (tree_wait.h).
  return treeAttention(of: walk).pointee.load(ordering: .relaxed) == 0 || core.mayCall(walk, index)
}
