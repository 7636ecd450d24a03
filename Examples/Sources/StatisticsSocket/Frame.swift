// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What a process tells those who look on, once in an interval, as a line of JSON.
public struct Frame: Codable, Sendable {
  /// The name and the number of the process.
  public var name: String
  public var process: Int32
  /// Nanoseconds on the central's clock.
  public var time: UInt64
  public var statistics: EventStatistics
  /// The handlers that were slow since the last frame; at most 32 of them.
  public var slow: [EventSlowHandler]
}

/// What went wrong with a socket.
public struct SocketError: Error, CustomStringConvertible {
  public let call: String
  public let path: String
  public let code: Int32

  public var description: String { "\(call) failed for \(path): \(String(cString: strerror(code)))" }
}

#if canImport(Darwin)
  import Darwin
  let streamSocket = SOCK_STREAM
#else
  import Glibc
  let streamSocket = Int32(SOCK_STREAM.rawValue)
#endif

/// Keeps a socket out of the programs that this process starts: a connection that one of them holds would not end.
func keepPrivate(_ socket: Int32) {
  _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
}

/// A socket of the Unix domain, as `connect` and `bind` take it.
struct SocketAddress {
  private var address = sockaddr_un()

  init(_ path: String) throws {
    address.sun_family = sa_family_t(AF_UNIX)
    let room = MemoryLayout.size(ofValue: address.sun_path)
    // With the 0 at its end.
    guard path.utf8.count < room else { throw SocketError(call: "socket", path: path, code: ENAMETOOLONG) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  }

  func pass<Result>(to call: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
