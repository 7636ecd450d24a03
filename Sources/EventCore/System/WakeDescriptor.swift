// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A file descriptor that is readable from a `signal()` to the next `clear()`: an eventfd on Linux, a pipe
/// elsewhere.
final class WakeDescriptor: Sendable {
  /// What a loop polls.
  let reading: Int32
  /// The same for an eventfd, the other end of a pipe.
  private let writing: Int32

  /// - Parameter prefersPipe: For tests: makes a pipe on Linux, too.
  init(prefersPipe: Bool = false) {
    if !prefersPipe, let made = Functions.eventfd?(0, O_NONBLOCK | O_CLOEXEC), made >= 0 {
      (reading, writing) = (made, made)
      return
    }
    var ends: [Int32] = [-1, -1]
    require(
      pipe(&ends) == 0,
      """
      The system refused to make a descriptor for EventPump.fileDescriptor: pipe failed with error \(errno). Raise \
      the limit of the process for open files, or use the wake-up closure of EventPump.init(on:mailbox:wakeUp:).
      """)
    for end in ends {
      _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      _ = fcntl(end, F_SETFD, fcntl(end, F_GETFD) | FD_CLOEXEC)
    }
    (reading, writing) = (ends[0], ends[1])
  }

  deinit {
    close(reading)
    if writing != reading { close(writing) }
  }

  /// Makes it readable. Any thread.
  func signal() {
    var one: UInt64 = 1
    // An error but EINTR means that it is full, and so readable already.
    while write(writing, &one, 8) < 0, errno == EINTR {}
  }

  /// Makes it unreadable. A `signal()` at the same time may come before or after.
  func clear() {
    withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
      while true {
        let count = read(reading, buffer.baseAddress!, buffer.count)
        // An eventfd gives its whole value at once, a pipe what fits.
        guard count == buffer.count || count < 0 && errno == EINTR else { return }
      }
    }
  }

  /// Waits until it is readable, or until a time of `monotonicNanoseconds`; `.max` is never. False if the time has
  /// come. Where the system has no `ppoll`, it may come up to a millisecond late.
  func wait(until deadline: UInt64) -> Bool {
    while true {
      var entry = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
      let found: Int32
      if deadline == .max {
        found = poll(&entry, 1, -1)
      } else {
        let now = monotonicNanoseconds()
        let left = deadline - min(now, deadline)
        if let ppoll = Functions.ppoll {
          var time = timespec()
          time.tv_sec = numericCast(left / 1_000_000_000)
          time.tv_nsec = numericCast(left % 1_000_000_000)
          found = ppoll(&entry, 1, &time, nil)
        } else {
          found = poll(&entry, 1, Int32(clamping: (left + 999_999) / 1_000_000))
        }
        // At least one look, even if the deadline has passed.
        if found <= 0, left == 0 { return false }
      }
      if found > 0 { return true }
    }
  }

  /// Functions of Linux that are not visible to Swift, found by their names; nil where there are none.
  private enum Functions {
    typealias EventFD = @convention(c) (UInt32, Int32) -> Int32
    typealias PPoll = @convention(c) (
      UnsafeMutablePointer<pollfd>, UInt, UnsafePointer<timespec>, OpaquePointer?
    ) -> Int32

    #if os(Linux) || os(Android)
      static let eventfd = dlsym(nil, "eventfd").map { unsafeBitCast($0, to: EventFD.self) }
      static let ppoll = dlsym(nil, "ppoll").map { unsafeBitCast($0, to: PPoll.self) }
    #else
      static let eventfd: EventFD? = nil
      static let ppoll: PPoll? = nil
    #endif
  }
}
