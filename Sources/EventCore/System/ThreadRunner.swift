// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Starts a detached thread of the system that runs `body`.
///
/// `Foundation.Thread` is not used, since it would bring in Foundation.
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
    The system refused to make a thread: pthread_create failed with error \(status). Ask for fewer \
    threads (EventPool.capacity), or raise the limits of the process for threads and memory.
    """)
}

/// What a new thread gets.
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

/// Names the calling thread, with as much of the name as the system takes. If the system refuses it, the
/// thread has no name.
private func setThreadName(_ name: String) {
  var short = name
  func shorten(toBytes limit: Int) {
    while short.utf8.count > limit { short.removeLast() }
  }
  #if canImport(Darwin)
    shorten(toBytes: 63)
    pthread_setname_np(short)
  #elseif os(Linux) || os(Android)
    shorten(toBytes: 15)
    // `pthread_setname_np` and `prctl` are not visible to Swift here.
    let file = open("/proc/thread-self/comm", O_WRONLY)
    guard file >= 0 else { return }
    _ = write(file, short, short.utf8.count)
    close(file)
  #endif
}

/// Makes the sleeps of the calling thread end on time: otherwise Linux may add 50 µs to each, to save
/// wake-ups. If the system refuses it, that stays so.
func sleepWithoutSlack() {
  #if os(Linux) || os(Android)
    // Neither `prctl` nor the thread's number is visible to Swift; the link's target ends with the number.
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

/// A number that no other running thread has; never 0.
package func currentThreadNumber() -> UInt {
  #if canImport(Darwin)
    UInt(bitPattern: pthread_self())
  #else
    UInt(pthread_self())
  #endif
}

/// What a thread is known by when it may have ended: a later one may get its number.
final class ThreadIdentity: Sendable {
  private static let own = ThreadLocal<ThreadIdentity>(keepsValues: true)

  /// That of the calling thread.
  static var current: ThreadIdentity { own.kept { ThreadIdentity() }.takeUnretainedValue() }
}

/// Lets other threads run first.
func yieldThread() {
  _ = sched_yield()
}

/// The same in the rounds of a loop that waits for a step of another thread, which may have a lower priority and then
/// gets the processor only while this one sleeps.
func yieldThread(round: inout Int) {
  round += 1
  if round < 64 { yieldThread() } else { usleep(50) }
}

/// The name of the calling thread; empty if it has none, or if the system does not tell.
func currentThreadName() -> String {
  var name = [UInt8](repeating: 0, count: 64)
  #if canImport(Darwin)
    name.withUnsafeMutableBytes {
      _ = pthread_getname_np(pthread_self(), $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
    }
  #elseif os(Linux) || os(Android)
    let file = open("/proc/thread-self/comm", O_RDONLY)
    guard file >= 0 else { return "" }
    defer { close(file) }
    let length = name.withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count - 1) }
    guard length > 0 else { return "" }
  #endif
  return String(decoding: name.prefix { $0 != 0 && $0 != UInt8(ascii: "\n") }, as: UTF8.self)
}
