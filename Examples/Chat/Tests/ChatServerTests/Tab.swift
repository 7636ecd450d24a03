// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import FlyingSocks
import Foundation

/// A browser's tab in small: a web socket (RFC 6455) on the loopback that sends masked texts and gets lines.
///
/// One task uses it at a time, which makes it safe to send.
final class Tab: @unchecked Sendable {
  struct Failure: Error {
    let text: String
  }

  let socket: AsyncSocket
  private var bytes: [UInt8] = []
  private var begin = 0
  private var lines: ArraySlice<String> = []
  /// The code and the reason of the server's close frame.
  private(set) var closing: (code: Int, reason: String)?

  /// - Parameter receiveBuffer: How many bytes the system keeps for a tab that does not read.
  init(port: UInt16, room: String, name: String, receiveBuffer: Int32? = nil) async throws {
    let answer = try await Self.get("/chat?room=\(room)&name=\(name)", port: port, isSocket: true, receiveBuffer)
    guard answer.head.hasPrefix("HTTP/1.1 101") else { throw Failure(text: answer.head) }
    socket = answer.socket
    bytes = answer.rest
  }

  deinit {
    try? socket.close()
  }

  /// Asks for a page, and reads the head of the answer.
  static func get(
    _ target: String, port: UInt16, isSocket: Bool = false, _ receiveBuffer: Int32? = nil, origin: String? = nil
  ) async throws -> (head: String, rest: [UInt8], socket: AsyncSocket) {
    let plain = try Socket(domain: AF_INET)
    if let receiveBuffer { try plain.setValue(receiveBuffer, for: .receiveBufferSize) }
    let socket = try await AsyncSocket(socket: plain, pool: Pool.shared.running())
    try await socket.connect(to: .inet(ip4: "127.0.0.1", port: port))
    let upgrade = """
      Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r
      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n
      """
    let from = origin.map { "Origin: \($0)\r\n" } ?? ""
    try await socket.write(
      Data("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(from)\(isSocket ? upgrade : "Connection: close\r\n")\r\n".utf8))
    var read: [UInt8] = []
    while true {
      if let end = read.firstRange(of: Array("\r\n\r\n".utf8)) {
        return (String(decoding: read[..<end.lowerBound], as: UTF8.self), Array(read[end.upperBound...]), socket)
      }
      read += try await socket.read(atMost: 4_096)
    }
  }

  /// Asks for a page, and reads all of it.
  static func page(_ target: String, port: UInt16) async throws -> (head: String, body: String) {
    let (head, rest, socket) = try await get(target, port: port)
    var body = rest
    while let more = try? await socket.read(atMost: 4_096) { body += more }
    try? socket.close()
    return (head, String(decoding: body, as: UTF8.self))
  }

  func send(_ text: String) async throws {
    try await send(opcode: 1, Array(text.utf8))
  }

  /// Sends a frame.
  func send(opcode: UInt8, _ payload: [UInt8], isLast: Bool = true) async throws {
    let mask: [UInt8] = [0x12, 0x34, 0x56, 0x78]
    var frame: [UInt8] = [(isLast ? 0x80 : 0) | opcode]
    if payload.count < 126 {
      frame.append(0x80 | UInt8(payload.count))
    } else {
      frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    }
    frame += mask
    for (index, byte) in payload.enumerated() { frame.append(byte ^ mask[index & 3]) }
    try await socket.write(Data(frame))
  }

  /// Ends the web socket as a browser does.
  func close() async throws {
    try await send(opcode: 8, [0x03, 0xE8])
    while try await line() != nil {}
  }

  /// The next line; nil after the server's close frame, which it answers.
  func line() async throws -> String? {
    while lines.isEmpty {
      guard closing == nil else { return nil }
      let (opcode, payload) = try await frame()
      switch opcode {
      case 1:
        lines = String(decoding: payload, as: UTF8.self).components(separatedBy: "\n")[...]
      case 8:
        let code = payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        closing = (code, String(decoding: payload.dropFirst(2), as: UTF8.self))
        try? await send(opcode: 8, Array(payload.prefix(2)))
      case 10:
        lines = ["pong \(String(decoding: payload, as: UTF8.self))"]
      default:
        throw Failure(text: "The server sent a frame of the kind \(opcode).")
      }
    }
    return lines.removeFirst()
  }

  private func frame() async throws -> (opcode: UInt8, payload: ArraySlice<UInt8>) {
    try await fill(2)
    let opcode = bytes[begin] & 0x0F
    var length = Int(bytes[begin + 1])
    var head = 2
    if length >= 126 {
      let wide = length == 126 ? 2 : 8
      try await fill(2 + wide)
      length = bytes[begin + 2..<begin + 2 + wide].reduce(0) { $0 << 8 | Int($1) }
      head += wide
    }
    try await fill(head + length)
    let payload = bytes[begin + head..<begin + head + length]
    begin += head + length
    return (opcode, payload)
  }

  private func fill(_ count: Int) async throws {
    if begin > 1 << 16 {
      bytes.removeFirst(begin)
      begin = 0
    }
    while bytes.count - begin < count { bytes += try await socket.read(atMost: 4_096) }
  }
}

/// What wakes the tasks of all tabs.
private actor Pool {
  static let shared = Pool()
  private let pool: any AsyncSocketPool = SocketPool.make()
  private var starting: Task<Void, any Error>?

  func running() async throws -> any AsyncSocketPool {
    let starting = starting ?? Task { [pool] in
      try await pool.prepare()
      Task { try await pool.run() }
    }
    self.starting = starting
    try await starting.value
    return pool
  }
}
