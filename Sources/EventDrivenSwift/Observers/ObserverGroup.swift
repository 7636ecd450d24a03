// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Observers in the order of their registration, each once.
///
/// Callbacks run from a view, which nobody changes: they may add and remove observers as they like,
/// and no lock is held. No weak reference is read under the lock either, since letting go of what
/// it gave may end the object, and its `deinit` may come back here.
@usableFromInline
final class ObserverGroup: Sendable {
  private struct State {
    var entries: [ObserverEntry] = []
    /// What has been made of exactly these entries, by type.
    var views: [(type: ObjectIdentifier, view: AnyObject)] = []
    /// Changes with `entries`.
    var version: UInt64 = 0
    /// At how many entries those whose observers are gone are looked for.
    var sweepAt = 16
    var isClosed = false
  }
  private let state = Guarded(State())

  /// Changes the entries, unless `body` returns nil. What was made of them may end user code: it ends out of
  /// the lock, as do entries that `body` takes out and returns.
  private func change<Result>(_ body: (inout State) -> Result?) -> Result? {
    let (result, garbage) = state.withLock { state in
      guard let result = body(&state) else { return (Result?.none, [(ObjectIdentifier, AnyObject)]()) }
      let garbage = state.views
      state.version &+= 1
      state.views = []
      return (result, garbage)
    }
    return withExtendedLifetime(garbage) { result }
  }

  /// Adds an observer behind the others, unless it is there. False if the group is closed.
  ///
  /// - Parameter context: Asked for where it is to be called, if the observer is new.
  @discardableResult
  func add(_ observer: AnyObject, _ context: () -> (any ObserverContext)?) -> Bool {
    let id = ObjectIdentifier(observer)
    if let known = state.withLock({ $0.entries.first { $0.id == id } }) {
      if known.isUsable { return true }
      // It could not be called any more, or was of another object, whose place in memory this got.
      known.end()
    }
    let new = ObserverEntry(observer, context())
    var isOpen = true
    let added = change { state -> (isLarge: Bool, ended: ObserverEntry?)? in
      isOpen = !state.isClosed
      guard isOpen else { return nil }
      var ended: ObserverEntry?
      if let index = state.entries.firstIndex(where: { $0.id == id }) {
        // Another thread was faster.
        if !state.entries[index].isEnded { return nil }
        ended = state.entries.remove(at: index)
      }
      state.entries.append(new)
      return (state.entries.count >= state.sweepAt, ended)
    }
    if added?.isLarge == true {
      sweep()
    }
    return isOpen
  }

  /// Removes an observer. No call of it begins after the return.
  func remove(_ observer: AnyObject) {
    let id = ObjectIdentifier(observer)
    let entry = change { state in
      state.entries.firstIndex { $0.id == id }.map { state.entries.remove(at: $0) }
    }
    entry?.end()
  }

  /// Refuses later observers if there are none. True if it is closed.
  func closeIfEmpty() -> Bool {
    state.withLock { state in
      state.isClosed = state.isClosed || state.entries.isEmpty
      return state.isClosed
    }
  }

  /// Frees the entries of observers that are gone, and those that have been ended.
  @usableFromInline
  func sweep() {
    let gone = state.withLock { $0.entries }.filter { $0.observer == nil }
    for entry in gone {
      entry.end()
    }
    _ = change { state -> [ObserverEntry]? in
      let ended = state.entries.filter(\.isEnded)
      state.entries.removeAll(where: \.isEnded)
      state.sweepAt = max(16, 2 * state.entries.count)
      return ended.isEmpty ? nil : ended
    }
  }

  /// How many entries it holds, those of gone observers among them.
  var entryCount: Int { state.withLock { $0.entries.count } }

  // MARK: Notifying

  /// Calls every observer of a type by the calling thread, wherever it registered.
  @inlinable
  func notifyDirectly<Observer>(_ code: (Observer) -> Void) {
    let view = view(of: Observer.self)
    var sawGone = view.sawGone
    for index in view.entries.indices where !view.call(at: index, code) {
      sawGone = true
    }
    if sawGone {
      sweep()
    }
  }

  /// Has every observer of a type called where it registered.
  @inlinable
  func notify<Observer>(_ code: @escaping @Sendable (Observer) -> Void) {
    let view = view(of: Observer.self)
    var sawGone = view.sawGone
    for index in view.entries.indices {
      if view.entries[index].isDirect {
        sawGone = !view.call(at: index, code) || sawGone
      } else if !view.callElsewhere(at: index, code) {
        view.end(at: index)
        sawGone = true
      }
    }
    if sawGone {
      sweep()
    }
  }

  @inlinable
  func view<Observer>(of type: Observer.Type) -> ObserverView<Observer> {
    guard let view = findView(ObjectIdentifier(type)) else { return makeView(of: type) }
    // Stored under this type below.
    return unsafeDowncast(view, to: ObserverView<Observer>.self)
  }

  @usableFromInline
  func findView(_ type: ObjectIdentifier) -> AnyObject? {
    state.withLock { state in state.views.first { $0.type == type }?.view }
  }

  @usableFromInline
  func makeView<Observer>(of type: Observer.Type) -> ObserverView<Observer> {
    let key = ObjectIdentifier(type)
    let (entries, version) = state.withLock { ($0.entries, $0.version) }
    let view = ObserverView<Observer>(entries)
    state.withLock { state in
      let isKnown = state.views.contains { $0.type == key }
      guard state.version == version, !isKnown else { return }
      state.views.append((key, view))
    }
    return view
  }
}
