// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// What a thread keeps for its dispatches until it ends: the routes that it used last, so that the next
/// dispatches count no reference and take no mutex for them, and memory for records.
///
/// Touched by its thread alone.
struct LockingThread {
  /// What the thread remembers of a key. It lies side by side, since a dispatch reads it right after the
  /// unlock of the one before, where it would have to wait for each load that depends on another one.
  struct Route {
    fileprivate var key: UInt = 0
    fileprivate var version: UInt64 = 0
    /// Retained by hand, so that a dispatch counts no reference.
    private(set) var snapshot: Unmanaged<LockingSnapshot>?
    /// The only receiver; nil if there are several.
    private(set) var only: LockingSnapshot.Entry?
  }

  private static let routeCount = 8
  private let routes: UnsafeMutablePointer<Route>
  private var memory: UnsafeMutableRawPointer
  private var size = 8192
  /// How many dispatches are nested on this thread; the outermost one has the memory.
  private var dispatches = 0
  /// Snapshots that the thread forgot while a dispatch relied on them.
  private var forgotten: [LockingSnapshot] = []
  /// A larger dispatch gets memory of its own.
  private static let largest = 65_536

  private init() {
    routes = .allocate(capacity: Self.routeCount)
    routes.initialize(repeating: Route(), count: Self.routeCount)
    memory = .allocate(byteCount: size, alignment: 64)
  }

  static let key: pthread_key_t = {
    var key = pthread_key_t()
    check(
      pthread_key_create(&key) { raw in
        // Optional on some systems, and never nil.
        let thread = (raw as UnsafeMutableRawPointer?).unsafelyUnwrapped
          .assumingMemoryBound(to: LockingThread.self)
        for route in 0..<LockingThread.routeCount {
          thread.pointee.routes[route].snapshot?.release()
        }
        thread.pointee.routes.deallocate()
        thread.pointee.memory.deallocate()
        thread.deallocate()
      }, "pthread_key_create")
    return key
  }()

  @inline(__always)
  static func current(_ key: pthread_key_t) -> UnsafeMutablePointer<LockingThread> {
    pthread_getspecific(key)?.assumingMemoryBound(to: LockingThread.self) ?? make()
  }

  @inline(never)
  private static func make() -> UnsafeMutablePointer<LockingThread> {
    let thread = UnsafeMutablePointer<LockingThread>.allocate(capacity: 1)
    thread.initialize(to: LockingThread())
    check(pthread_setspecific(key, thread), "pthread_setspecific")
    return thread
  }

  /// The route of a key as of a version of its router, which no other router has; `look` finds it if the
  /// thread does not remember it. What the route names is there until the thread asks again, or, after
  /// `takeMemory`, until `giveMemory`.
  @inline(__always)
  mutating func route(
    _ key: UInt, _ version: UInt64,
    _ look: () -> (snapshot: LockingSnapshot?, version: UInt64)
  ) -> UnsafePointer<Route> {
    // A key is the address of a type's metadata.
    let route = routes + Int((key >> 4 ^ key >> 8) % UInt(Self.routeCount))
    if route.pointee.key != key || route.pointee.version != version { fill(route, key, look()) }
    return UnsafePointer(route)
  }

  @inline(never)
  private mutating func fill(
    _ route: UnsafeMutablePointer<Route>, _ key: UInt,
    _ found: (snapshot: LockingSnapshot?, version: UInt64)
  ) {
    if let old = route.pointee.snapshot?.takeRetainedValue(), dispatches > 0 {
      forgotten.append(old)
    }
    let entries = found.snapshot?.entries
    route.pointee = Route(
      key: key, version: found.version, snapshot: found.snapshot.map { .passRetained($0) },
      only: entries?.count == 1 ? entries?.first : nil)
  }

  /// Memory for the records of a dispatch, until `giveMemory`. A very large dispatch gets memory of its own,
  /// and so does one inside of another: a balancer of the user's may dispatch, and so may the end of a
  /// payload.
  @inline(__always)
  mutating func takeMemory(_ bytes: Int) -> UnsafeMutableRawPointer {
    dispatches &+= 1
    return dispatches == 1 && bytes <= size ? memory : otherMemory(bytes)
  }

  @inline(never)
  private mutating func otherMemory(_ bytes: Int) -> UnsafeMutableRawPointer {
    guard dispatches == 1, bytes <= Self.largest else {
      return .allocate(byteCount: bytes, alignment: 64)
    }
    memory.deallocate()
    size = max(bytes, min(2 * size, Self.largest))
    memory = .allocate(byteCount: size, alignment: 64)
    return memory
  }

  @inline(__always)
  mutating func giveMemory(_ given: UnsafeMutableRawPointer) {
    dispatches &-= 1
    if given != memory { given.deallocate() }
    if dispatches == 0, !forgotten.isEmpty { forgotten.removeAll() }
  }
}
