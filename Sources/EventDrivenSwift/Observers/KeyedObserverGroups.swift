// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A group of observers for each key.
///
/// Hashing and comparing keys is user code, which must not run under the lock. So the table maps hash
/// values to buckets, a bucket is searched without the lock, and it is replaced only if it is still the
/// same. No lock is taken while another one is held.
@usableFromInline
final class KeyedObserverGroups: Sendable {
  @usableFromInline
  final class Keyed: @unchecked Sendable {
    // Constant; keys can be compared on any thread.
    let key: AnyHashable
    let hash: Int
    @usableFromInline let group = ObserverGroup()

    init(_ key: AnyHashable, _ hash: Int) {
      self.key = key
      self.hash = hash
    }
  }

  private struct Table {
    var buckets: [Int: [Keyed]] = [:]
    var count = 0
    /// The number of keys at which those without observers are removed.
    var sweepAt = 16
  }
  private let table = Guarded(Table())

  func add(_ observer: AnyObject, for key: AnyHashable, _ context: () -> (any ObserverContext)?) {
    let hash = key.hashValue
    while true {
      let bucket = table.withLock { $0.buckets[hash] ?? [] }
      if let keyed = bucket.first(where: { $0.key == key }) {
        if keyed.group.add(observer, context) { return }
        // The group was closed, since its last observer went, but is still in the table.
        remove(keyed)
        continue
      }
      let keyed = Keyed(key, hash)
      _ = keyed.group.add(observer, context)
      let (isAdded, isLarge) = table.withLock { table in
        let now = table.buckets[hash] ?? []
        guard now.elementsEqual(bucket, by: ===) else { return (false, false) }
        table.buckets[hash] = bucket + [keyed]
        table.count += 1
        return (true, table.count >= table.sweepAt)
      }
      guard isAdded else { continue }
      if isLarge {
        sweep()
      }
      return
    }
  }

  func remove(_ observer: AnyObject, for key: AnyHashable) {
    guard let keyed = find(key) else { return }
    keyed.group.remove(observer)
    removeIfEmpty(keyed)
  }

  /// Calls the observers of a key on the calling thread.
  @inlinable
  func notifyDirectly<Observer>(_ key: AnyHashable, _ code: (Observer) -> Void) {
    guard let keyed = find(key) else { return }
    keyed.group.notifyDirectly(code)
    removeIfEmpty(keyed)
  }

  /// Calls the observers of a key in the places for which they were added.
  @inlinable
  func notify<Observer>(_ key: AnyHashable, _ code: @escaping @Sendable (Observer) -> Void) {
    guard let keyed = find(key) else { return }
    keyed.group.notify(code)
    removeIfEmpty(keyed)
  }

  /// How many keys are in the table.
  var keyCount: Int { table.withLock { $0.count } }

  @usableFromInline
  func find(_ key: AnyHashable) -> Keyed? {
    let hash = key.hashValue
    return table.withLock { $0.buckets[hash] }?.first { $0.key == key }
  }

  @usableFromInline
  func removeIfEmpty(_ keyed: Keyed) {
    if keyed.group.closeIfEmpty() {
      remove(keyed)
    }
  }

  /// Removes a closed group from the table, if it is still there.
  private func remove(_ keyed: Keyed) {
    let hash = keyed.hash
    // The caller retains `keyed`, so that the key does not end under the lock.
    table.withLock { table in
      guard let index = table.buckets[hash]?.firstIndex(where: { $0 === keyed }) else { return }
      table.buckets[hash]!.remove(at: index)
      table.count -= 1
      if table.buckets[hash]!.isEmpty {
        table.buckets[hash] = nil
      }
    }
  }

  private func sweep() {
    for bucket in table.withLock({ $0.buckets }).values {
      for keyed in bucket {
        keyed.group.sweep()
        removeIfEmpty(keyed)
      }
    }
    table.withLock { $0.sweepAt = max(16, 2 * $0.count) }
  }
}
