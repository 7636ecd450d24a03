// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if ServiceLifecycle && os(Linux)
  import Foundation
  import Testing

  @Suite("A service in a program that gets signals")
  struct SignalTests {
    /// Runs the program until its end, sends it a signal once it is ready, and returns what it said after that.
    private func run(_ mode: String, signal: Int32) async throws -> [String] {
      let process = Process()
      process.executableURL = Bundle.main.executableURL!.deletingLastPathComponent()
        .appending(path: "EventCoreServiceProgram")
      process.arguments = [mode]
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      var said = ""
      while !said.contains("ready\n") {
        let data = output.fileHandleForReading.availableData
        try #require(!data.isEmpty, "The program ended before it was ready: \(said)")
        said += String(decoding: data, as: UTF8.self)
      }
      kill(process.processIdentifier, signal)
      said += String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
      process.waitUntilExit()
      #expect(process.terminationReason == .exit && process.terminationStatus == 0)
      return said.split(separator: "\n").dropFirst().map(String.init)
    }

    @Test("SIGTERM has everything handled that waits, in each part, before the program ends (D10)")
    func terminate() async throws {
      #expect(
        try await run("open", signal: SIGTERM) == [
          "Shut down: Opener was drained, 0 handled, 0 left; Worker was drained, 1000 handled, 0 left; "
            + "EventCentral was drained, 1000 handled, 0 left.",
          "ended",
        ])
    }

    @Test("SIGTERM while a handler does not return: the drain gives up, and says what is left")
    func stuck() async throws {
      let said = try await run("stuck", signal: SIGTERM)
      // No time is left for the central, whose thread may have ended all the same.
      #expect(
        said.first?.hasPrefix(
          "Shut down: Opener was drained, 0 handled, 0 left; Worker was ended, 0 handled, 999 left; ") == true, "\(said)")
      #expect(said.last == "ended")
    }

    @Test("a signal that cancels ends the program at once")
    func interrupt() async throws {
      #expect(
        try await run("stuck", signal: SIGINT) == [
          "Cancelled: Opener was ended, 0 handled, 0 left; Worker was ended, 0 handled, 999 left; "
            + "EventCentral was ended, 0 handled, 0 left.",
          "threw CancellationError",
        ])
    }
  }
#endif
