// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ChatServer
import EventCore
import Foundation
import Logging
import ServiceLifecycle

@main
struct Program {
  /// `eventcore-chat [port] [core]`: serves until SIGTERM or ^C, which drain; says the address to open.
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    let argument = arguments.first ?? "8080"
    guard let port = UInt16(argument) else {
      fail(2, "\(argument) is not a port from 0 to 65535.")
    }
    let name = arguments.dropFirst().first ?? EventCentral.Core.default.rawValue
    guard let core = EventCentral.Core.available.first(where: { $0.rawValue == name }) else {
      fail(2, "\(name) is none of the cores: \(EventCentral.Core.available.map(\.rawValue).joined(separator: ", ")).")
    }
    let logger = Logger(label: "eventcore-chat", factory: StreamLogHandler.standardError(label:))
    let chat = try Chat(port: port, core: core, logger: logger)
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
