// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A group of observers for each key.
///
/// Hashing and comparing keys is code of the user's, and runs without the lock: the table goes by hash
/// value, a bucket is looked through outside, and changed only if it is still the one that was looked at.
/// Lock order: none is taken while another is held.
final class KeyedObserverGroups: Sendable {
  private final class Keyed: @unchecked Sendable {
    // Constant; equality of keys is of values, whatever the thread.
    let key: AnyHashable
    let group = ObserverGroup()

    init(_ key: AnyHashable) {
      self.key = key
    }
  }

  private struct Table {
    var buckets: [Int: [Keyed]] = [:]
    var count = 0
    /// At how many keys those without observers are looked for.
    var sweepAt = 16
  }
  private let table = Guarded(Table())

  func add(_ observer: AnyObject, for key: AnyHashable, _ context: (any ObserverContext)?) {
    let hash = key.hashValue
    while true {
      let bucket = table.withLock { $0.buckets[hash] ?? [] }
      if let keyed = bucket.first(where: { $0.key == key }) {
        if keyed.group.add(observer, context) { return }
        // Its last observer went, and whoever noticed has not come to this yet.
        remove(keyed, hash)
        continue
      }
      let keyed = Keyed(key)
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
    guard let (keyed, hash) = find(key) else { return }
    keyed.group.remove(observer)
    removeIfEmpty(keyed, hash)
  }

  /// Calls the observers of a key by the calling thread.
  func notifyDirectly<Observer>(_ key: AnyHashable, _ code: (Observer) -> Void) {
    guard let (keyed, hash) = find(key) else { return }
    keyed.group.notifyDirectly(code)
    removeIfEmpty(keyed, hash)
  }

  /// Has the observers of a key called where they registered.
  func notify<Observer>(_ key: AnyHashable, _ code: @escaping @Sendable (Observer) -> Void) {
    guard let (keyed, hash) = find(key) else { return }
    keyed.group.notify(code)
    removeIfEmpty(keyed, hash)
  }

  /// How many keys have observers, or had some that nobody has looked for since.
  var keyCount: Int { table.withLock { $0.count } }

  private func find(_ key: AnyHashable) -> (Keyed, hash: Int)? {
    let hash = key.hashValue
    let bucket = table.withLock { $0.buckets[hash] }
    guard let keyed = bucket?.first(where: { $0.key == key }) else { return nil }
    return (keyed, hash)
  }

  private func removeIfEmpty(_ keyed: Keyed, _ hash: Int) {
    if keyed.group.closeIfEmpty() {
      remove(keyed, hash)
    }
  }

  /// Takes a closed group off the table, if it is still there.
  private func remove(_ keyed: Keyed, _ hash: Int) {
    // The caller holds it, so that the key does not end under the lock.
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
    for (hash, bucket) in table.withLock({ $0.buckets }) {
      for keyed in bucket {
        keyed.group.sweep()
        removeIfEmpty(keyed, hash)
      }
    }
    table.withLock { $0.sweepAt = max(16, 2 * $0.count) }
  }
}
