// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

@testable import EventCoreNATS

/// Sockets of the loopback.
enum Loopback {
  /// A socket that takes connections, on a free port.
  static func listen() throws -> (socket: Int32, port: UInt16) {
    // SOCK_STREAM, which is of another type on each system.
    let listener = socket(AF_INET, .init(1), 0)
    let port = withAddress(0) { address, length in
      guard
        bind(listener, address, length.pointee) == 0, Foundation.listen(listener, 16) == 0,
        getsockname(listener, address, length) == 0
      else { return UInt16?.none }
      return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
    }
    guard let port else { throw CocoaError(.executableNotLoadable) }
    return (listener, port)
  }

  /// A connection; nil if nobody is there.
  static func connect(to port: Int) -> Int32? {
    let client = socket(AF_INET, .init(1), 0)
    if withAddress(port, { Foundation.connect(client, $0, $1.pointee) }) == 0 { return client }
    close(client)
    return nil
  }

  private static func withAddress<Result>(
    _ port: Int, _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = .init(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
    }
  }
}

/// What is between clients and a server, where a test takes things away: the connections break, and the server lives.
final class Cable: Sendable {
  enum Direction { case toServer, toClient }

  let url: String
  private let listener: Int32
  private let line: Line

  init(to server: ServerProcess) throws {
    let (listener, port) = try Loopback.listen()
    url = "nats://127.0.0.1:\(port)"
    self.listener = listener
    let line = Line()
    self.line = line
    // A write to an end that is gone is an error.
    signal(SIGPIPE, SIG_IGN)
    Thread.detachNewThread { [port = server.port] in
      defer { close(listener) }
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        line.connect(client, to: port)
      }
    }
  }

  deinit {
    shutdown(listener, .init(SHUT_RDWR))
    line.cut()
  }

  /// From here on nothing of what is sent arrives, until the cable is mended.
  func swallow(_ direction: Direction) { line.state.withLock { $0.swallows = direction } }

  /// How often a text was sent and did not arrive.
  func swallowed(_ text: String) -> Int {
    line.state.withLock { String(decoding: $0.swallowed, as: UTF8.self).components(separatedBy: text).count - 1 }
  }

  /// Ends all connections, and takes no others.
  func cut() { line.cut() }

  func mend() { line.state.withLock { ($0.isCut, $0.swallows, $0.swallowed) = (false, nil, Data()) } }

  private final class Line: Sendable {
    struct State {
      var isCut = false
      var swallows: Direction?
      var swallowed = Data()
      var connections: [Connection] = []
    }
    let state = Locked(State())

    func connect(_ client: Int32, to port: Int) {
      let isCut = state.withLock { $0.isCut }
      guard !isCut, let server = Loopback.connect(to: port) else { return _ = close(client) }
      let connection = Connection(client, server)
      state.withLock { $0.isCut ? connection.end() : $0.connections.append(connection) }
      for direction in [Direction.toServer, .toClient] {
        Thread.detachNewThread { self.carry(direction, connection) }
      }
    }

    private func carry(_ direction: Direction, _ connection: Connection) {
      var (from, to) = (connection.client, connection.server)
      if direction == .toClient { swap(&from, &to) }
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = read(from, &bytes, bytes.count)
        guard count > 0 else { break }
        let isSwallowed = state.withLock { state in
          guard state.isCut || state.swallows == direction else { return false }
          state.swallowed += bytes[..<count]
          return true
        }
        var begin = 0
        while !isSwallowed, begin < count {
          let written = bytes.withUnsafeBytes { write(to, $0.baseAddress! + begin, count - begin) }
          guard written > 0 else { break }
          begin += written
        }
      }
      connection.end()
      state.withLock { $0.connections.removeAll { $0 === connection } }
    }

    func cut() {
      state.withLock { state in
        state.isCut = true
        for connection in state.connections { connection.end() }
      }
    }
  }

  /// Its sockets are closed when nobody uses them any more.
  private final class Connection: Sendable {
    let client, server: Int32

    init(_ client: Int32, _ server: Int32) { (self.client, self.server) = (client, server) }

    deinit {
      close(client)
      close(server)
    }

    func end() { for socket in [client, server] { shutdown(socket, .init(SHUT_RDWR)) } }
  }
}
