// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Synchronization

/// Shows the statistics of a central to other processes of the same user on this machine, by a socket in the file
/// system, which is that user's alone (mode 0600). While nobody is connected the central is not observed.
///
/// Released, it lets nobody else in, and ends those that are connected with their next frame. A client whose socket
/// takes nothing for five seconds is ended.
public final class StatisticsServer: Sendable {
  private let central: EventCentral
  private let path: String
  /// Which file the socket is, since another server may have replaced it.
  private let inode: ino_t
  private let interval: Duration
  private let slowerThan: Duration
  private let hasEnded: Ended

  /// Shared with the threads of those who are connected, and with the one that waits for them.
  private final class Ended: Sendable {
    let value = Atomic<Bool>(false)
    /// Where that one waits; nil once it has closed it.
    private let listening: Mutex<Int32?>

    init(_ listening: Int32) { self.listening = Mutex(listening) }

    func endAccept() {
      value.store(true, ordering: .releasing)
      listening.withLock { if let listening = $0 { shutdown(listening, Int32(SHUT_RDWR)) } }
    }

    func close() {
      listening.withLock { listening in
        if let listening { closeFile(listening) }
        listening = nil
      }
    }
  }

  /// - Parameters:
  ///   - central: What to show.
  ///   - path: Where the socket is to be. A socket that is there already is replaced.
  ///   - interval: The time between two frames, more than nothing.
  ///   - slowerThan: Handlers that take so long, more than no time, are told.
  public init(
    _ central: EventCentral, at path: String, every interval: Duration = .seconds(1),
    slowerThan: Duration = .milliseconds(5)
  ) throws {
    precondition(
      interval > .zero && slowerThan > .zero,
      """
      A StatisticsServer sends a frame after a time that is greater than 0, and tells handlers that take more than no \
      time; these are \(interval) and \(slowerThan): pass positive durations.
      """)
    let address = try SocketAddress(path)
    let listening = socket(AF_UNIX, streamSocket, 0)
    guard listening >= 0 else { throw SocketError(call: "socket", path: path, code: errno) }
    keepPrivate(listening)
    var status = stat()
    if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK { unlink(path) }
    // Nobody but the user may look on; until it listens, nobody can connect.
    guard address.pass(to: { bind(listening, $0, $1) }) == 0, chmod(path, 0o600) == 0, listen(listening, 8) == 0 else {
      let code = errno
      close(listening)
      throw SocketError(call: "bind", path: path, code: code)
    }
    (self.central, self.path, self.interval) = (central, path, interval)
    self.slowerThan = slowerThan
    _ = lstat(path, &status)
    inode = status.st_ino
    hasEnded = Ended(listening)
    let (hasEnded, weakCentral) = (hasEnded, WeakCentral(central))
    let thread = Thread {
      while true {
        let client = accept(listening, nil, nil)
        guard !hasEnded.value.load(ordering: .acquiring) else {
          if client >= 0 { close(client) }
          break
        }
        guard client >= 0 else {
          // Who connects waits meanwhile: the process may have no file descriptor left for a moment.
          if errno != EINTR { Thread.sleep(forTimeInterval: 0.1) }
          continue
        }
        keepPrivate(client)
        let session = Thread {
          Self.serve(client, weakCentral, hasEnded, every: interval, slowerThan: slowerThan)
        }
        session.name = "statistics"
        session.start()
      }
      hasEnded.close()
    }
    thread.name = "statistics"
    thread.start()
  }

  deinit {
    var status = stat()
    if lstat(path, &status) == 0, status.st_ino == inode { unlink(path) }
    hasEnded.endAccept()
  }

  private struct WeakCentral: Sendable {
    weak let central: EventCentral?
    init(_ central: EventCentral) { self.central = central }
  }

  /// The slow handlers since the last frame.
  private final class SlowList: Sendable {
    private let list = Mutex<[EventSlowHandler]>([])
    func append(_ slow: EventSlowHandler) {
      list.withLock { if $0.count < 32 { $0.append(slow) } }
    }
    func take() -> [EventSlowHandler] {
      list.withLock { list in
        defer { list = [] }
        return list
      }
    }
  }

  /// Writes frames until the other side or the server goes.
  private static func serve(
    _ client: Int32, _ weakCentral: WeakCentral, _ hasEnded: Ended, every interval: Duration, slowerThan: Duration
  ) {
    defer { close(client) }
    // A client that was stopped reads nothing; it may connect again.
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    #if canImport(Darwin)
      var isSilent: Int32 = 1
      setsockopt(client, SOL_SOCKET, SO_NOSIGPIPE, &isSilent, socklen_t(MemoryLayout<Int32>.size))
    #endif
    let list = SlowList()
    guard
      let tokens = weakCentral.central.map({
        ($0.observe(), $0.watch(slowerThan: slowerThan) { list.append($0) })
      })
    else { return }
    defer { withExtendedLifetime(tokens) {} }
    let encoder = JSONEncoder()
    while !hasEnded.value.load(ordering: .acquiring) {
      // The central is not kept while this writes and sleeps.
      let frame = weakCentral.central.map {
        Frame(
          name: ProcessInfo.processInfo.processName, process: ProcessInfo.processInfo.processIdentifier,
          time: $0.now.uptimeNanoseconds, statistics: $0.statistics, slow: list.take())
      }
      guard let frame, var line = try? encoder.encode(frame) else { return }
      line.append(UInt8(ascii: "\n"))
      guard write(line, to: client) else { return }
      guard !hasGone(client, within: interval) else { return }
    }
  }

  /// Waits for a time, or until the other side goes.
  private static func hasGone(_ client: Int32, within time: Duration) -> Bool {
    let end = ContinuousClock.now + time
    while true {
      let left = (end - .now) / .milliseconds(1)
      guard left > 0 else { return false }
      // That nobody is there any more. Linux tells it in any case, Darwin only if it is asked for.
      var file = pollfd(fd: client, events: Int16(POLLHUP), revents: 0)
      if poll(&file, 1, Int32(min(left.rounded(.up), 1e9))) > 0 { return true }
    }
  }

  private static func write(_ line: Data, to client: Int32) -> Bool {
    line.withUnsafeBytes { bytes in
      var written = 0
      while written < bytes.count {
        // No signal if the other side has gone; `serve` has said so to Darwin.
        #if canImport(Darwin)
          let flags: Int32 = 0
        #else
          let flags = Int32(MSG_NOSIGNAL)
        #endif
        let count = send(client, bytes.baseAddress! + written, bytes.count - written, flags)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        written += count
      }
      return true
    }
  }
}

// Within a class with a function of that name it is not found.
private func closeFile(_ file: Int32) { close(file) }
