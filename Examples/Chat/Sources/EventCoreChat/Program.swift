// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ChatServer
import Foundation
import Logging
import ServiceLifecycle

@main
struct Program {
  /// `eventcore-chat [port]`: serves until SIGTERM or ^C, which drain; says the address to open.
  static func main() async throws {
    let argument = CommandLine.arguments.dropFirst().first ?? "8080"
    guard let port = UInt16(argument) else {
      fail(2, "\(argument) is not a port from 0 to 65535.")
    }
    let logger = Logger(label: "eventcore-chat", factory: StreamLogHandler.standardError(label:))
    let chat = try Chat(port: port, logger: logger)
    Task {
      let address = "http://127.0.0.1:\(try await chat.port())\n"
      FileHandle.standardOutput.write(Data(address.utf8))
    }
    do {
      try await ServiceGroup(
        services: chat.services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger
      ).run()
    } catch {
      fail(1, "it cannot serve on port \(port): \(error)")
    }
  }

  private static func fail(_ status: Int32, _ reason: String) -> Never {
    FileHandle.standardError.write(Data("eventcore-chat: \(reason)\n".utf8))
    exit(status)
  }
}
