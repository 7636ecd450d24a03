// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if os(Linux)
  import EventCore
  import Foundation
  import Testing

  @Suite(.serialized, .timeLimit(.minutes(2)))
  struct ProgramTests {
    private func program(_ arguments: [String]) -> Process {
      let process = Process()
      process.executableURL = Bundle.main.executableURL!.deletingLastPathComponent().appending(path: "eventcore-chat")
      process.arguments = arguments
      return process
    }

    @Test(
      "SIGTERM to the program in the middle of a load: what was accepted reaches everybody, and it ends in order",
      arguments: EventCentral.Core.available)
    func terminate(core: EventCentral.Core) async throws {
      let process = program(["0", core.rawValue])
      let (output, errors) = (Pipe(), Pipe())
      process.standardOutput = output
      process.standardError = errors
      try process.run()
      let identifier = process.processIdentifier
      let address = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
      let port = try #require(UInt16(address.split(separator: ":").last?.dropLast() ?? ""), "\(address)")

      // Few messages on their way, so that no tab misses any.
      let floods = try await flood(4, port: port, window: 10) { flood in
        if flood.accepted.count == 100 { kill(identifier, SIGTERM) }
        return false
      }
      let accepted = floods.flatMap(\.accepted).sorted()
      #expect(floods.count == 4 && accepted.count >= 100)
      for flood in floods {
        #expect(flood.closing == 1001)
        #expect(flood.said.count + flood.missed == accepted.count)
        #expect(flood.missed > 0 || flood.numbers == accepted)
      }
      let said = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
      process.waitUntilExit()
      #expect(process.terminationReason == .exit && process.terminationStatus == 0)
      #expect(said.contains("EventPool<Moderator> was drained") && said.contains("0 left; EventCentral"), "\(said)")
    }

    @Test("A port that is none, or is taken, and a core that there is not, are refused with a sentence")
    func badPort() async throws {
      try await withChat { port, _ in
        for (arguments, status, sentence) in [
          (["http"], 2, "not a port"), (["0", "fast"], 2, "none of the cores: "),
          (["\(port)"], 1, "cannot serve on port \(port)"),
        ] {
          let (process, errors) = (program(arguments), Pipe())
          process.standardError = errors
          try process.run()
          let said = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
          process.waitUntilExit()
          #expect(process.terminationReason == .exit && process.terminationStatus == status)
          #expect(said.contains(sentence), "\(said)")
        }
      }
    }
  }
#endif
