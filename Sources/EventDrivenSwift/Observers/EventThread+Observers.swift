// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Event threads can be observed: by those that want to be told by this very thread, while its
/// events reach whoever listens.
///
/// **Threads**: any, for every member. A thread that nobody observes pays nothing for it.
extension EventThread: KeyedObservable {
  /// What the thread knows of its observers, who are called in the contexts of its central.
  public func observerRegistry(isNeeded: Bool) -> ObserverRegistry? {
    let attached = isNeeded ? attachment.value { ObserverRegistry(on: central) } : attachment.value
    // Nothing else is attached.
    return attached.map { unsafeDowncast($0, to: ObserverRegistry.self) }
  }
}
