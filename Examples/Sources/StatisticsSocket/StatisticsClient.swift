// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// Reads the frames of a process that shows its statistics.
public final class StatisticsClient {
  /// No frame is so long.
  private static let longestLine = 1 << 26
  private let file: Int32
  private var buffer: [UInt8] = []
  /// How much of the buffer is known to have no end of a line.
  private var searched = 0

  /// - Parameter path: Where the process has its socket. In a folder that is everybody's, such as /tmp, somebody else may
  ///   have made it first: that of another user is refused, unless you are root.
  public init(at path: String) throws {
    let address = try SocketAddress(path)
    file = socket(AF_UNIX, streamSocket, 0)
    guard file >= 0 else { throw SocketError(call: "socket", path: path, code: errno) }
    keepPrivate(file)
    let file = file
    guard address.pass(to: { connect(file, $0, $1) }) == 0 else {
      throw SocketError(call: "connect", path: path, code: errno)
    }
    // Now that it is connected: nobody else can take the file away in such a folder.
    var status = stat()
    guard lstat(path, &status) == 0, [status.st_uid, 0].contains(getuid()) || status.st_uid == 0 else {
      // The `deinit` closes the socket.
      throw SocketError(call: "trust (it is another user's)", path: path, code: EPERM)
    }
  }

  deinit {
    close(file)
  }

  /// The next line, without its end; nil when the process has ended. It waits. A line that is longer than any frame
  /// comes in parts, which do not decode as frames.
  public func nextLine() -> [UInt8]? {
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        searched = 0
        defer { buffer.removeSubrange(...end) }
        return Array(buffer[..<end])
      }
      searched = buffer.count
      if buffer.count >= Self.longestLine {
        defer { (buffer, searched) = ([], 0) }
        return buffer
      }
      var part = [UInt8](repeating: 0, count: 1 << 16)
      let count = read(file, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      buffer += part[..<count]
    }
  }

  /// The next frame; nil when the process has ended. It throws if the line is not a frame.
  public func next() throws -> Frame? {
    try nextLine().map { try JSONDecoder().decode(Frame.self, from: Data($0)) }
  }
}
