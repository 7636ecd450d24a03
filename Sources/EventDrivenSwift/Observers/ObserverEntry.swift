// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

/// One registration of an observer, which it does not retain.
@usableFromInline
final class ObserverEntry: @unchecked Sendable {
  // `object` is written by the initialiser alone, and reading a weak reference is atomic. The rest
  // is constant or atomic.

  /// Tells the object from all others that are alive.
  let id: ObjectIdentifier
  /// Where the observer is called; nil for the thread that notifies.
  private let context: (any ObserverContext)?
  private weak var object: AnyObject?
  /// Set by the thread that removes the observer, read before each call.
  private let hasEnded = Atomic<Bool>(false)

  /// - Parameter context: Which the entry leaves when it ends.
  init(_ object: AnyObject, _ context: (any ObserverContext)?) {
    id = ObjectIdentifier(object)
    self.object = object
    self.context = context
  }

  deinit {
    end()
  }

  /// The observer; nil if it is gone. Letting go of it may run its `deinit`: never under a lock,
  /// but where the caller holds the object anyway.
  @usableFromInline
  var observer: AnyObject? { object }

  @usableFromInline
  var isDirect: Bool { context == nil }

  @usableFromInline
  var isEnded: Bool {
    // Pairs with `end`: a call that begins after the removal returned sees it.
    hasEnded.load(ordering: .acquiring)
  }

  /// Whether it can still be called: the observer is there, and the place where it registered. What
  /// is looked at may end by it: with no lock held.
  var isUsable: Bool { !isEnded && object != nil && context?.isUsable != false }

  /// Has a closure called where the observer registered. False if the observer or that place is
  /// gone.
  func run(_ body: @escaping @Sendable () -> Void) -> Bool {
    guard let context, object != nil else { return false }
    return context.run(body)
  }

  /// No call of the observer begins after this. What waits in its context may be freed: with no
  /// lock held.
  func end() {
    // Releasing: for `isEnded`. Acquiring is not needed, since nothing is read that the first
    // caller wrote.
    guard !hasEnded.exchange(true, ordering: .releasing) else { return }
    context?.leave()
  }
}
