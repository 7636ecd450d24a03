// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import FlyingFox
import Foundation
import ServiceLifecycle

/// The part that browsers see: the page, the web sockets and the metrics. It ends last, since what the others still do
/// during the shutdown is told through it.
struct WebServer: Service {
  let http: HTTPServer
  /// The web sockets that are open.
  let open: DispatchGroup
  /// How long browsers may take for what is left, once everything is in their mailboxes.
  let patience: Duration

  func run() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await http.run() }
      group.addTask {
        // The hall has ended: every web socket has its last line.
        try await gracefulShutdown()
        await withCheckedContinuation { ended in open.notify(queue: .global()) { ended.resume() } }
      }
      group.addTask {
        try await gracefulShutdown()
        try await Task.sleep(for: patience)
      }
      // The first to end ends the others. For the server itself that cuts all connections.
      defer { group.cancelAll() }
      try await group.next()
    }
  }
}

/// Lets a browser in: a name and a room that are none are refused before there is a web socket.
struct ChatHandler: HTTPHandler {
  let socket: @Sendable (_ name: String, _ room: String) -> ChatSocket

  func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
    // A browser lets the pages of all sites open web sockets, and says here whose page it is.
    if let origin = request.headers[HTTPHeader("Origin")], let host = request.headers[.host],
      origin.split(separator: "/", maxSplits: 2).last.map(String.init) != host
    {
      return HTTPResponse(statusCode: .forbidden, body: Data("Only pages of this server may open its web sockets.\n".utf8))
    }
    let (name, room) = (request.query["name"] ?? "", request.query["room"] ?? "")
    guard isName(name), isName(room) else {
      return HTTPResponse(statusCode: .badRequest, body: Data("A name and a room have 1 to 32 characters.\n".utf8))
    }
    return try await WebSocketHTTPHandler(handler: socket(name, room)).handleRequest(request)
  }

  private func isName(_ text: String) -> Bool {
    (1...32).contains(text.count) && text.utf8.count <= 128 && !text.allSatisfy(\.isWhitespace)
  }
}

/// One web socket.
struct ChatSocket: WSHandler {
  let name: String
  let room: String
  let world: EventCentral
  let door: Door
  let counts: ChatCounts
  let open: DispatchGroup

  func makeFrames(for client: AsyncThrowingStream<WSFrame, any Error>) async throws -> AsyncStream<WSFrame> {
    let seat: Seat
    do {
      guard door.isOpen else { throw Hall.Refusal(reason: Door.isClosing) }
      // If the browser is gone before, the hall takes the seat back.
      seat = try await world.request(Join(name: name, room: room))
    } catch {
      let reason = (error as? Hall.Refusal)?.reason ?? "The server cannot let you in now."
      return AsyncStream { continuation in
        continuation.yield(.close(code: WSCloseCode(WSCloseCode.tryAgainLater.code, reason: reason)))
        continuation.finish()
      }
    }
    let reader = SocketReader(seat: seat, world: world, door: door)
    let writer = SocketWriter(
      seat, on: world, counts: counts, open: open, reader: Task { await reader.read(client) })
    return AsyncStream { await writer.next() }
  }
}
