// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Waits for a condition that no gate can tell, by looking again and again. False after ten minutes.
public func waitUntil(_ condition: () -> Bool) -> Bool {
  let deadline = DispatchTime.now() + .seconds(600)
  while !condition() {
    guard DispatchTime.now() < deadline else { return false }
    sched_yield()
  }
  return true
}

/// Waits in a task as `waitUntil` does on a thread, on the actor of the caller.
public func yieldUntil(
  isolation: isolated (any Actor)? = #isolation, _ condition: () -> Bool
) async -> Bool {
  let deadline = DispatchTime.now() + .seconds(600)
  while !condition() {
    guard DispatchTime.now() < deadline else { return false }
    await Task.yield()
  }
  return true
}

/// Runs a body on `count` threads at once and waits for all of them.
public func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let start = DispatchSemaphore(value: 0)
  let group = DispatchGroup()
  for index in 0..<count {
    group.enter()
    runThread {
      start.wait()
      body(index)
      group.leave()
    }
  }
  for _ in 0..<count {
    start.signal()
  }
  group.wait()
}

/// How many threads Swift's runtime has for tasks that compute.
public var taskThreadCount: Int { Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

/// A thread of the system's own, so that tests do not share the cooperative pool.
public func runThread(_ body: @escaping @Sendable () -> Void) {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  let start = Unmanaged.passRetained(Start(body)).toOpaque()
  #if canImport(Darwin)
    var thread: pthread_t?
    let status = pthread_create(
      &thread, &attributes,
      {
        Unmanaged<Start>.fromOpaque($0).takeRetainedValue().body()
        return nil
      }, start)
  #else
    var thread = pthread_t()
    let status = pthread_create(
      &thread, &attributes,
      {
        Unmanaged<Start>.fromOpaque($0!).takeRetainedValue().body()
        return nil
      }, start)
  #endif
  precondition(status == 0, "A test could not start a thread: error \(status).")
}

/// Runs a body that blocks its thread on a thread of its own. A test that blocked in a task would take
/// one of the few threads of the cooperative pool, and would wait for ever for work that needs one.
public func offThePool(_ body: @escaping @Sendable () -> Void) async {
  await withCheckedContinuation { continuation in
    runThread {
      body()
      continuation.resume()
    }
  }
}

/// Tells the calling thread from all others that run now.
public func currentThread() -> UInt {
  #if canImport(Darwin)
    UInt(bitPattern: pthread_self())
  #else
    UInt(pthread_self())
  #endif
}
