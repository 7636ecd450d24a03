// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ChatServer
import EventCore
import Foundation
import Logging
import ServiceLifecycle

/// Runs a chat in this process, on a free port, and shuts it down in the end.
///
/// - Returns: What `body` returns, after the shutdown.
func withChat<Result: Sendable>(
  buffer: Int = 256, patience: Duration = .seconds(60), core: EventCentral.Core = .default,
  _ body: @Sendable (_ port: UInt16, _ group: ServiceGroup) async throws -> Result
) async throws -> Result {
  let logger = Logger(label: "chat", factory: { _ in SwiftLogNoOpLogHandler() })
  let chat = try Chat(port: 0, buffer: buffer, patience: patience, core: core, logger: logger)
  let group = ServiceGroup(services: chat.services, logger: logger)
  async let running: Void = group.run()
  let port = try await chat.port()
  let result = try await body(port, group)
  await group.triggerGracefulShutdown()
  try await running
  return result
}
