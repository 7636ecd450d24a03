// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ChildOnTerminal
import EventCore
import Foundation
import Testing

@testable import StatisticsSocket

/// The program itself, which looks into this process.
@Suite("eventcore-top", .serialized)
struct TopTests {
  struct Tick: Eventable {}

  private let path = FileManager.default.temporaryDirectory.appending(path: "top-\(UUID().uuidString.prefix(8))").path
  private let world = EventCentral()

  /// Runs a body while a thread named kitchen handles ticks, and this process shows that; the body may end the latter.
  private func serve(_ body: (_ server: inout StatisticsServer?) throws -> Void) throws {
    let kitchen = EventThread(on: world, name: "kitchen")
    kitchen.addEventCallback { (_: Tick) in }
    defer {
      kitchen.cancel()
      kitchen.join()
    }
    var server: StatisticsServer? = try StatisticsServer(world, at: path, every: .milliseconds(1))
    try body(&server)
  }

  /// How many ticks the thread has handled by a frame.
  private func delivered(_ frame: Frame) -> UInt64? {
    frame.statistics.receivers.first { $0.name == "kitchen" }?.types.first { $0.type.hasSuffix("Tick") }?.delivered
  }

  @Test("without a terminal each frame is a line of JSON that names the receivers, and its counts grow")
  func lines() throws {
    try serve { server in
      let top = try TopOnPipes([path])
      // From the first frame on the events are counted.
      var frame = try top.frame()
      #expect(frame.process == ProcessInfo.processInfo.processIdentifier)
      #expect(frame.statistics.receivers.map(\.name) == ["kitchen"])
      for ticks in 1...3 as ClosedRange<UInt64> {
        Tick().queue(on: world)
        while delivered(frame) != ticks {
          let next = try top.frame()
          #expect(next.time > frame.time)
          #expect(delivered(next) ?? 0 >= delivered(frame) ?? 0)
          frame = next
        }
      }
      withExtendedLifetime(server) {}
    }
  }

  @Test("the program ends without an error when the process that it looks into stops showing its statistics")
  func end() throws {
    try serve { server in
      let top = try TopOnPipes([path])
      _ = try top.frame()
      server = nil
      while let line = try top.line() { _ = try JSONDecoder().decode(Frame.self, from: line) }
      #expect(try top.end() == .init(status: 0, errors: ""))
    }
  }

  @Test("the program ends after as many frames as were asked for")
  func count() throws {
    try serve { server in
      let top = try TopOnPipes([path, "--frames", "2"])
      for _ in 0..<2 { _ = try top.frame() }
      #expect(try top.line() == nil)
      #expect(try top.end() == .init(status: 0, errors: ""))
      withExtendedLifetime(server) {}
    }
  }

  @Test("a negative number of frames is refused")
  func negative() throws {
    let top = try TopOnPipes([path, "--frames", "-1"])
    #expect(try top.line() == nil)
    let end = try top.end()
    #expect(end.status == EX_USAGE)
    #expect(end.errors.contains("--frames is -1: it must be 0 or more."))
  }

  @Test("without a socket there is an error that names it, and nothing else is printed")
  func missing() throws {
    let top = try TopOnPipes([path])
    #expect(try top.line() == nil)
    let end = try top.end()
    #expect(end.status == EX_USAGE)
    #expect(end.errors.contains("connect failed for \(path): No such file or directory."))
  }

  #if os(Linux)
    /// Plays a process that sends these bytes to the program and closes the connection. The caller removes the socket.
    private func send(_ bytes: [UInt8], to makeTop: () throws -> TopOnPipes) throws -> TopOnPipes {
      let listening = socket(AF_UNIX, streamSocket, 0)
      defer { close(listening) }
      try #require(SocketAddress(path).pass { bind(listening, $0, $1) } == 0)
      try #require(listen(listening, 1) == 0)
      let top = try makeTop()
      let connection = accept(listening, nil, nil)
      defer { close(connection) }
      bytes.withUnsafeBytes { bytes in
        var sent = 0
        while sent < bytes.count {
          let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
          let count = Foundation.send(connection, rest.baseAddress!, rest.count, Int32(MSG_NOSIGNAL))
          guard count > 0 else { break }
          sent += count
        }
      }
      return top
    }

    @Test(
      "what is no frame is an error that says so, and is not passed on", .timeLimit(.minutes(1)),
      arguments: ["junk\n", "\n", "{\"name\": \"world\"}\n", String(repeating: "[", count: 1_000) + "\n"])
    func noFrame(line: String) throws {
      defer { unlink(path) }
      let top = try send(Array(line.utf8)) { try TopOnPipes([path]) }
      #expect(try top.line() == nil)
      let end = try top.end()
      #expect(end.status == EXIT_FAILURE)
      #expect(end.errors.contains("\(path) sends something that is not a frame of this version: start"))
    }

    /// Searched anew with each part that comes, it would take minutes.
    @Test("a very long line is no frame either, and is searched once", .timeLimit(.minutes(1)))
    func longLine() throws {
      defer { unlink(path) }
      let line = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 24) + [UInt8(ascii: "\n")]
      let top = try send(line) { try TopOnPipes([path]) }
      #expect(try top.line() == nil)
      let end = try top.end()
      #expect(end.status == EXIT_FAILURE)
      #expect(end.errors.contains("\(path) sends something that is not a frame"))
    }

    @Test("an output that takes nothing is an error, and no crash")
    func full() throws {
      try serve { server in
        let top = try TopOnPipes([path], output: FileHandle(forWritingTo: URL(filePath: "/dev/full")))
        let end = try top.end()
        #expect(end.status == EXIT_FAILURE)
        #expect(end.errors.hasPrefix("Error: "))
        withExtendedLifetime(server) {}
      }
    }

    @Test("the program looks into the demo, and ends without an error and with a whole line when that is killed")
    func demo() throws {
      // It is killed before it could remove its socket.
      defer { unlink(path) }
      let demo = try ChildOnTerminal("eventcore-demo", ["--socket", path])
      // With its first picture it has the socket.
      try demo.read(until: "events/s")
      let top = try TopOnPipes([path])
      let frame = try top.frame()
      #expect(frame.name == "eventcore-demo")
      #expect(frame.process == demo.process)
      #expect(Set(frame.statistics.receivers.map(\.name)) == ["rates", "spikes", "EventPump"])
      kill(demo.process, SIGKILL)
      #expect(try demo.exitStatus() == -SIGKILL)
      while let line = try top.line() { _ = try JSONDecoder().decode(Frame.self, from: line) }
      #expect(try top.end() == .init(status: 0, errors: ""))
    }

    @Test("on a terminal there is a table that fits it, until the process goes")
    func table() throws {
      try serve { server in
        let top = try ChildOnTerminal("eventcore-top", [path])
        var page = try top.nextPage()
        let process = ProcessInfo.processInfo
        #expect(page[0].hasPrefix("\(process.processName) (\(process.processIdentifier))   0 events handled"))
        Tick().queue(on: world)
        while !page[0].contains("   1 events handled, ") { page = try top.nextPage() }
        #expect(page[2].hasPrefix("receiver  event "))
        #expect(page[3].hasPrefix("kitchen "))
        #expect(page[4].contains("TopTests.Tick"))
        // The table has more columns than the terminal: a line that is continued would move those below.
        #expect(page.map(\.count).max() == 80)
        server = nil
        #expect(try top.exitStatus() == 0)
      }
    }
  #endif
}

#if os(Linux)
  extension ChildOnTerminal {
    /// The lines of the next frame.
    fileprivate func nextPage() throws -> [String] {
      try read(until: "\u{1B}[H")
      return try read(until: "\u{1B}[J").components(separatedBy: "\r\n").map {
        $0.replacingOccurrences(of: "\u{1B}[K", with: "")
      }
    }
  }
#endif
