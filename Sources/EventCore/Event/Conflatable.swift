// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An event of which some receivers need only the newest for each key.
///
/// ```swift
/// struct Moved: Conflatable {
///   var entity: Int
///   var position: SIMD3<Float>
///   var conflationKey: Int { entity }
/// }
///
/// renderer.addEventCallback(
///   { (event: Moved) in print(event.entity, event.position) }, interestedIn: .latestPerKey)
/// ```
///
/// A handler asks for it by ``EventListenerInterest/latestPerKey``; all others get every event. Of each key one
/// event waits at most: a newer one takes the place of the one that waits, and the older one is counted as superseded
/// (D4). So what waits is bounded by the number of keys, however far the handler falls behind. A key takes some 200
/// bytes from its first event until the handler is removed and no thread remembers its mailbox (<doc:Limits>).
public protocol Conflatable: Eventable {
  /// Integers of the standard library are the fastest; other keys are hashed and compared.
  associatedtype ConflationKey: Hashable & Sendable

  /// What the event is about. Events with equal keys replace one another.
  ///
  /// **Threads**: it is evaluated on the thread that dispatches, one to four times for each handler that asked, several
  /// threads at once; the hash and the comparison of keys likewise. All three must be quick, and must not dispatch.
  var conflationKey: ConflationKey { get }

  /// How keys of this type are told apart. Leave it as it is: every type has it.
  static var conflation: EventConflation { get }
}

extension Conflatable {
  // Inlinable: it is compiled with the event's type, so that a key costs no call through a table.
  @inlinable
  public static var conflation: EventConflation { EventConflation(Self.self) }
}
