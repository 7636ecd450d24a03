// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Starts a detached thread of the system that runs `body`; whoever wants to know its end keeps a
/// latch.
///
/// `Foundation.Thread` is not used: it cannot be subclassed on every platform, and brings
/// Foundation.
func startThread(named name: String, _ body: @escaping @Sendable () -> Void) {
  var attributes = pthread_attr_t()
  check(pthread_attr_init(&attributes), "pthread_attr_init")
  defer { pthread_attr_destroy(&attributes) }
  check(
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED)),
    "pthread_attr_setdetachstate")
  let start = Unmanaged.passRetained(ThreadStart(name: name, body: body)).toOpaque()
  #if canImport(Darwin)
    var thread: pthread_t?
    let status = pthread_create(&thread, &attributes, { runThread($0) }, start)
  #else
    var thread = pthread_t()
    let status = pthread_create(&thread, &attributes, { runThread($0!) }, start)
  #endif
  require(
    status == 0,
    """
    A thread of EventCore's is one of the system's, and the system made none: pthread_create failed \
    with error \(status). Ask for fewer (EventPool.capacity), or raise the limits of the process \
    for threads and memory.
    """)
}

/// What a new thread is given.
private final class ThreadStart: Sendable {
  let name: String
  let body: @Sendable () -> Void

  init(name: String, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }
}

private func runThread(_ opaque: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  let start = Unmanaged<ThreadStart>.fromOpaque(opaque).takeRetainedValue()
  setThreadName(start.name)
  start.body()
  return nil
}

/// Names the calling thread, cut to what the system takes. A name is a convenience: if the system
/// refuses it, the thread goes without.
private func setThreadName(_ name: String) {
  #if canImport(Darwin)
    pthread_setname_np(String(name.prefix(63)))
  #elseif os(Linux) || os(Android)
    // `pthread_setname_np` and `prctl` are not visible to Swift here.
    var short = name
    while short.utf8.count > 15 {
      short.removeLast()
    }
    let file = open("/proc/thread-self/comm", O_WRONLY)
    guard file >= 0 else { return }
    _ = write(file, short, short.utf8.count)
    close(file)
  #endif
}

/// Has the calling thread's sleeps end when they are over: otherwise Linux may add 50 µs to each,
/// to save wake-ups. If the system refuses it, they end when they end.
func sleepWithoutSlack() {
  #if os(Linux) || os(Android)
    // `prctl` is not visible to Swift, and neither is the thread's number: it ends the target of
    // the link.
    var target = [UInt8](repeating: 0, count: 64)
    let length = target.withUnsafeMutableBytes {
      readlink("/proc/thread-self", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
    }
    guard length > 0 else { return }
    let name = target[..<length].split(separator: UInt8(ascii: "/")).last ?? []
    let file = open("/proc/\(String(decoding: name, as: UTF8.self))/timerslack_ns", O_WRONLY)
    guard file >= 0 else { return }
    _ = write(file, "1", 1)
    close(file)
  #endif
}

/// A number that tells the calling thread from all others that run now; never 0.
package func currentThreadNumber() -> UInt {
  #if canImport(Darwin)
    UInt(bitPattern: pthread_self())
  #else
    UInt(pthread_self())
  #endif
}

/// Lets another thread run first.
func yieldThread() {
  _ = sched_yield()
}
