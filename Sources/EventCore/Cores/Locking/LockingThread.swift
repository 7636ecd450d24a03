// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a thread keeps for its dispatches until it ends: the routes that it used last, so that the next
/// dispatches count no reference and take no mutex for them, and memory for records.
///
/// Touched by its thread alone.
final class LockingThread {
  static let all = ThreadLocal<LockingThread>(keepsValues: true)

  private struct Route {
    var key: UInt = 0
    var version: UInt64 = 0
    /// Retained by hand, so that a dispatch counts no reference.
    var snapshot: Unmanaged<LockingSnapshot>?
  }

  private static let routeCount = 8
  private let routes: UnsafeMutablePointer<Route>
  /// Nil until the first dispatch that needs it: most threads handle events and dispatch none, and most
  /// events are written where they wait.
  private var memory: UnsafeMutableRawPointer?
  private static let size = 65_536
  /// How many dispatches are nested on this thread; the outermost one has the memory.
  private var dispatches = 0
  /// Snapshots that the thread forgot while a dispatch relied on them.
  private var forgotten: [LockingSnapshot] = []

  /// What a dispatch that began the short way was told, until it begins the other way: it is noted once.
  var note: Instruments.Note?

  init() {
    routes = .allocate(capacity: Self.routeCount)
    routes.initialize(repeating: Route(), count: Self.routeCount)
  }

  deinit {
    for route in 0..<Self.routeCount { routes[route].snapshot?.release() }
    routes.deallocate()
    memory?.deallocate()
  }

  /// The receivers of a key as of a version, which no other router has; `find` looks them up if the thread
  /// does not remember them. They are there until the thread asks again, or, after `takeMemory`, until
  /// `giveMemory`.
  @inline(__always)
  func route(
    _ key: UInt, _ version: UInt64, _ find: () -> (snapshot: LockingSnapshot?, version: UInt64)
  ) -> Unmanaged<LockingSnapshot>? {
    // A key is the address of a type's metadata.
    let route = routes + Int((key >> 4 ^ key >> 8) % UInt(Self.routeCount))
    if route.pointee.key != key || route.pointee.version != version { return remember(key, find(), route) }
    return route.pointee.snapshot
  }

  @inline(never)
  private func remember(
    _ key: UInt, _ found: (snapshot: LockingSnapshot?, version: UInt64),
    _ route: UnsafeMutablePointer<Route>
  ) -> Unmanaged<LockingSnapshot>? {
    let old = route.pointee.snapshot
    route.pointee = Route(
      key: key, version: found.version, snapshot: found.snapshot.map { .passRetained($0) })
    if dispatches > 0, let old {
      forgotten.append(old.takeRetainedValue())
    } else {
      // It may end what is the user's, which may dispatch, and then the place may be another route's by now.
      old?.release()
    }
    guard let snapshot = found.snapshot else { return nil }
    if route.pointee.key != key || route.pointee.version != found.version { forgotten.append(snapshot) }
    return .passUnretained(snapshot)
  }

  /// Memory for the records of a dispatch, until `giveMemory`. A very large dispatch gets memory of its own,
  /// and so does one inside of another: a balancer of the user's may dispatch, and so may the end of a
  /// payload.
  @inline(__always)
  func takeMemory(_ bytes: Int) -> UnsafeMutableRawPointer {
    dispatches &+= 1
    guard dispatches == 1, bytes <= Self.size else {
      return .allocate(byteCount: bytes, alignment: 64)
    }
    let place = memory ?? .allocate(byteCount: Self.size, alignment: 64)
    memory = place
    return place
  }

  @inline(__always)
  func giveMemory(_ given: UnsafeMutableRawPointer) {
    dispatches &-= 1
    if given != memory { given.deallocate() }
    if dispatches == 0, !forgotten.isEmpty { forgotten = [] }
  }
}
