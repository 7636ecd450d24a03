// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

/// One registration of an observer, which it does not retain.
@usableFromInline
final class ObserverEntry: @unchecked Sendable {
  // Only the initialiser writes `object`, and a weak reference is read atomically. The rest is constant or
  // atomic.

  /// The identity of the object, as long as it lives.
  let id: ObjectIdentifier
  /// Where the observer is called; nil for the thread that notifies.
  private let context: (any ObserverContext)?
  private weak var object: AnyObject?
  /// Set by the thread that removes the observer, read before each call.
  private let hasEnded = Atomic<Bool>(false)

  /// - Parameter context: Where the observer is called. The entry leaves the context when it ends.
  init(_ object: AnyObject, _ context: (any ObserverContext)?) {
    id = ObjectIdentifier(object)
    self.object = object
    self.context = context
  }

  deinit {
    end()
  }

  /// The observer; nil if it has ended. Releasing the result may run its `deinit`: so not under a lock,
  /// unless the caller retains the object anyway.
  @usableFromInline
  var observer: AnyObject? { object }

  @usableFromInline
  var isDirect: Bool { context == nil }

  @usableFromInline
  var isEnded: Bool {
    // Acquiring, pairs with `end`: a call that begins after the removal returned sees the end.
    hasEnded.load(ordering: .acquiring)
  }

  /// Whether the observer can still be called: neither it nor its place has ended. With no lock held, since
  /// this may release the last reference to either.
  var isUsable: Bool { !isEnded && object != nil && context?.isUsable != false }

  /// Runs a closure in the observer's place. False if the observer or the place has ended.
  func run(_ body: @escaping @Sendable () -> Void) -> Bool {
    guard let context, object != nil else { return false }
    return context.run(body)
  }

  /// Ends an entry whose observer could not be called, unless calls of it wait in a place that still runs them.
  func endUncalled() {
    if context?.isDraining != true { end() }
  }

  /// Ends the entry: no call of the observer begins after this. With no lock held, since it may free closures
  /// that wait in the context.
  func end() {
    // Releasing, pairs with `isEnded`. Not acquiring: a second caller reads nothing of the first one's.
    guard !hasEnded.exchange(true, ordering: .releasing) else { return }
    context?.leave()
  }
}
