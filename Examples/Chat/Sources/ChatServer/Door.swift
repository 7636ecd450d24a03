// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ServiceLifecycle
import Synchronization

/// What shuts first when the program is to end: from then on nobody joins, and nothing that is said is accepted.
final class Door: Service {
  static let isClosing = "The server shuts down, and has not accepted this."

  private let open = Atomic<Bool>(true)

  /// A message that sees the door open just before it shuts is handled all the same, or answered with an error.
  var isOpen: Bool { open.load(ordering: .relaxed) }

  func run() async throws {
    defer { open.store(false, ordering: .relaxed) }
    try await gracefulShutdown()
  }
}
