// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
public import EventCore
import EventCoreMetrics
import EventCoreServiceLifecycle
import FlyingFox
import Foundation
public import Logging
public import ServiceLifecycle

/// The chat server, wired: who dispatches what to whom, and in which order it ends.
public final class Chat: Sendable {
  /// For a `ServiceGroup`, which shuts them down in reverse: the door shuts; the pool and the hall handle what has come
  /// in, so that it is in the mailboxes of all seats, and a last line behind it; the server sends the browsers that, and
  /// closes their web sockets.
  public let services: [any Service]
  private let http: HTTPServer

  /// - Parameters:
  ///   - port: Where it listens on the loopback; 0 takes a free one.
  ///   - buffer: How many lines may wait for a browser.
  ///   - moderators: How many threads work on messages.
  ///   - patience: How long a shutdown waits for browsers that do not read what is left for them.
  ///   - core: EventCore's implementation.
  ///   - logger: Gets the report of the shutdown.
  public init(
    port: UInt16, buffer: Int = 256, moderators: Int = 2, patience: Duration = .seconds(5),
    core: EventCentral.Core = .default, logger: Logger
  ) throws {
    let world = EventCentral(core: core)
    let texts = TextMetrics()
    let counts = ChatCounts(texts)
    let pool = EventPool<Moderator>(
      capacity: moderators, balancer: .byKey { (said: Said) in said.seat.number }, on: world)
    let hall = Hall.open(on: world, buffer: buffer, counts: counts)
    let metrics = EventMetrics(of: pool, hall, world, factory: texts)
    let door = Door()
    let open = DispatchGroup()

    var routes = RoutedHTTPHandler()
    routes.appendRoute("GET /") { _ in
      HTTPResponse(statusCode: .ok, headers: [.contentType: "text/html; charset=utf-8"], body: Data(page.utf8))
    }
    routes.appendRoute(
      "GET /chat",
      to: ChatHandler { name, room in
        ChatSocket(name: name, room: room, world: world, door: door, counts: counts, open: open)
      })
    routes.appendRoute("GET /metrics") { _ in
      metrics.sample()
      return HTTPResponse(statusCode: .ok, headers: [.contentType: "text/plain"], body: Data(texts.text.utf8))
    }
    http = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: port), logger: .disabled, handler: routes)
    services = [
      WebServer(http: http, open: open, patience: patience),
      EventService(pool, hall, world, drainingFor: .seconds(10), logger: logger),
      door,
    ]
  }

  /// Waits until the server listens, and returns its port.
  public func port() async throws -> UInt16 {
    try await http.waitUntilListening()
    guard case .ip4(_, let port) = await http.listeningAddress else { throw CancellationError() }
    return port
  }
}
