// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Calls the handlers of a raised event, one after the other, on the calling thread.
///
/// - Parameter phases: The bits of an `EventRaiseScope`, and of `TreePhases`.
@inlinable
func walkTree<E: Eventable>(_ event: E, from source: EventNode, phases: UInt8) -> EventOutcome {
  let core = source.core
  guard let walk = core.begin(source.node, key: eventKey(E.self), phases: phases) else {
    return EventOutcome()
  }
  walk.pointee.scope = phases
  var handlerCount = 0
  repeat {
    // Not nil, here and below: the core sets both before it returns a walk.
    let registrations = walk.pointee.registrations.unsafelyUnwrapped
    let objects = walk.pointee.objects.unsafelyUnwrapped
    for index in 0..<Int(truncatingIfNeeded: walk.pointee.count) {
      let registration = registrations[index]
      guard mayCall(walk, index, registration, core) else { continue }
      guard let decision = callTreeHandler(objects[index], registration, event, source, walk)
      else { continue }
      handlerCount &+= 1
      if decision == .continue { continue }
      // Everything that only these decisions need is done here, so that other calls do not pay for it.
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

/// After `.stopAfterThisNode`: calls the node's other handlers of this phase, which begin at the index
/// `start` of the chunk, and ends the walk.
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

/// Calls one handler, whose object lives as long as the walk has the registration. Nil if nobody was called,
/// since the owner of the handler has ended.
@inlinable
@inline(__always)
func callTreeHandler<E: Eventable>(
  _ object: UnsafeRawPointer, _ registration: UnsafeMutableRawPointer, _ event: E, _ source: EventNode,
  _ walk: UnsafeMutablePointer<TreeWalk>
) -> EventDecision? {
  Unmanaged<TreeHandler>.fromOpaque(object)._withUnsafeGuaranteedRef { handler in
    // Its class is one of these two, since the registration has the key of E.
    guard !handler.isChoosing else {
      return unsafeDowncast(handler, to: ChoosingTreeHandler<E>.self)
        .choosing(EventNodeContext(event, source, walk, registration))
    }
    let handler = unsafeDowncast(handler, to: PlainTreeHandler<E>.self)
    handler.plain(event)
    return handler.decision
  }
}

/// Announces the call of a registration, and then checks whether it may still be called. A thread that
/// removes a handler and waits does the opposite: it marks the handler, and then looks for calls.
///
/// The C core has a function with these steps (tree_place.c), which `core.mayCall` calls when something has
/// changed. They are repeated here, by the offsets of `TreeLayout.swift`, since calling that function for
/// each handler was slower: 4.6 ns instead of 4.0 a handler in `tree-binary-1000`, and 8.3 instead of 7.0
/// in `tree-chain-8` (`Benchmarks/bench.sh --quick --shape tree-binary-1000`; Documentation/Choices.md,
/// "Trees").
@inlinable
@inline(__always)
func mayCall(
  _ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int, _ registration: UnsafeMutableRawPointer,
  _ core: any TreeCore.Type
) -> Bool {
  // Releasing: the previous handler has returned before others see that the walk has passed it.
  treeCurrent(of: walk).pointee.store(
    walk.pointee.first &+ UInt32(truncatingIfNeeded: index), ordering: .releasing)
  // Releasing, as above. A thread that waits makes this thread execute a fence; where the system cannot do
  // that, `attention` is set.
  treeCalling(of: walk).pointee.store(UInt(bitPattern: registration), ordering: .releasing)
  // Sequentially consistent, which on x86 is a plain load: they must not move before the stores above.
  guard
    walk.pointee.lastRemoval.pointee.load(ordering: .sequentiallyConsistent) == walk.pointee.seen
      || treeState(of: registration).pointee.load(ordering: .sequentiallyConsistent) == 0
  else { return false }
  // Relaxed: the loads above stay before it. A thread that sets it and waits makes this thread execute a
  // barrier afterwards (tree_wait.h).
  return treeAttention(of: walk).pointee.load(ordering: .relaxed) == 0 || core.mayCall(walk, index)
}
