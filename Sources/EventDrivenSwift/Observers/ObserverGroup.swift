// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Observers in the order in which they were added, each once.
///
/// Notifications use an immutable view of the list and hold no lock, so that callbacks may add and remove
/// observers. Weak references are not read under the lock either: releasing the result may end the object,
/// whose `deinit` may call this group.
@usableFromInline
final class ObserverGroup: Sendable {
  private struct State {
    var entries: [ObserverEntry] = []
    /// The earlier entries of observers that were added again, in whose places calls may wait (D10).
    var replaced: [ObserverEntry] = []
    /// The views of these entries, by type.
    var views: [(type: ObjectIdentifier, view: AnyObject)] = []
    /// Changes with `entries`.
    var version: UInt64 = 0
    /// The number of entries at which those of ended observers are removed.
    var sweepAt = 16
    var isClosed = false
  }
  private let state = Guarded(State())

  /// Changes the entries, unless `body` returns nil. The old views, and entries that `body` removes and
  /// returns, end outside of the lock, since that may run user code.
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

  /// Adds an observer behind the others, unless it was added before. False if the group is closed.
  ///
  /// - Parameter context: Returns where to call the observer; it is called only if the observer is new.
  @discardableResult
  func add(_ observer: AnyObject, _ context: () -> (any ObserverContext)?) -> Bool {
    let id = ObjectIdentifier(observer)
    // If it is not usable, its place takes no more, or it belongs to an earlier object at the same address.
    let known = state.withLock { $0.entries.first { $0.id == id } }
    if known?.isUsable == true { return true }
    let new = ObserverEntry(observer, context())
    var isOpen = true
    let isSweepDue = change { state -> Bool? in
      isOpen = !state.isClosed
      guard isOpen else { return nil }
      if let index = state.entries.firstIndex(where: { $0.id == id }) {
        // Another thread may have added the observer meanwhile.
        if state.entries[index] !== known, !state.entries[index].isEnded { return nil }
        state.replaced.append(state.entries.remove(at: index))
      }
      state.entries.append(new)
      return state.entries.count >= state.sweepAt || !state.replaced.isEmpty
    }
    if isSweepDue == true {
      sweep()
    }
    return isOpen
  }

  /// Removes an observer: no call of it begins after the return.
  func remove(_ observer: AnyObject) {
    let id = ObjectIdentifier(observer)
    let removed = change { state -> [ObserverEntry]? in
      let removed = state.entries.filter { $0.id == id } + state.replaced.filter { $0.id == id }
      state.entries.removeAll { $0.id == id }
      state.replaced.removeAll { $0.id == id }
      return removed.isEmpty ? nil : removed
    }
    for entry in removed ?? [] { entry.end() }
  }

  /// Closes the group if it is empty, after which it refuses observers. Returns whether it is closed.
  func closeIfEmpty() -> Bool {
    state.withLock { state in
      state.isClosed = state.isClosed || state.entries.isEmpty && state.replaced.isEmpty
      return state.isClosed
    }
  }

  /// Removes the entries of observers that have ended or were removed, and those replaced for which nothing waits.
  @usableFromInline
  func sweep() {
    let (entries, replaced) = state.withLock { ($0.entries, $0.replaced) }
    for entry in entries + replaced where entry.observer == nil {
      entry.end()
    }
    for entry in replaced {
      entry.endUncalled()
    }
    _ = change { state -> [ObserverEntry]? in
      // Each is asked once, since others end entries meanwhile.
      var ended: [ObserverEntry] = []
      func isEnded(_ entry: ObserverEntry) -> Bool {
        guard entry.isEnded else { return false }
        ended.append(entry)
        return true
      }
      state.entries.removeAll(where: isEnded)
      state.replaced.removeAll(where: isEnded)
      state.sweepAt = max(16, 2 * state.entries.count)
      return ended.isEmpty ? nil : ended
    }
  }

  /// How many entries the group has, including those of observers that have ended.
  var entryCount: Int { state.withLock { $0.entries.count } }

  // MARK: Notifying

  /// Calls every observer of a type on the calling thread, whatever its place is.
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

  /// Calls every observer of a type in its place.
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
    // `makeView` stores views of this type under this key.
    return unsafeDowncast(view, to: ObserverView<Observer>.self)
  }

  @usableFromInline
  func findView(_ type: ObjectIdentifier) -> AnyObject? {
    state.withLock { state in state.views.first { $0.type == type }?.view }
  }

  @usableFromInline
  func makeView<Observer>(of type: Observer.Type) -> ObserverView<Observer> {
    let key = ObjectIdentifier(type)
    let (entries, hasReplaced, version) = state.withLock { ($0.entries, !$0.replaced.isEmpty, $0.version) }
    // Each notification sweeps until nothing waits in the places of those that were replaced.
    let view = ObserverView<Observer>(entries, sawGone: hasReplaced)
    state.withLock { state in
      let isKnown = state.views.contains { $0.type == key }
      guard state.version == version, !isKnown else { return }
      state.views.append((key, view))
    }
    return view
  }
}
