// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import StatisticsSocket
import Testing

@Suite("Statistics by a socket", .serialized)
struct StatisticsSocketTests {
  struct Tick: Eventable {}

  private let path = FileManager.default.temporaryDirectory.appending(path: "top-\(UUID().uuidString.prefix(8))").path

  @Test("whoever connects gets frames, from then on, until the server goes")
  func frames() throws {
    let world = EventCentral()
    let pump = EventPump(on: world)
    pump.addEventCallback { (_: Tick) in }
    var server: StatisticsServer? = try StatisticsServer(world, at: path, every: .milliseconds(1))
    let clients = try (0..<2).map { _ in try StatisticsClient(at: path) }
    for client in clients { #expect(try client.next() != nil) }
    Tick().queue(on: world)
    pump.run()
    for client in clients {
      var frame = try client.next()
      // A frame may have been taken between the dispatch and the run.
      while let seen = frame, seen.statistics.receivers.first?.types.first?.delivered != 1 { frame = try client.next() }
      #expect(frame?.statistics.dispatched(Tick.self) == 1)
      #expect(frame?.statistics.receivers.first?.types.first?.delivered == 1)
      #expect(frame?.process == ProcessInfo.processInfo.processIdentifier)
    }
    withExtendedLifetime(server) {}
    server = nil
    for client in clients {
      while try client.next() != nil {}
    }
    #expect(throws: SocketError.self) { try StatisticsClient(at: path) }
    pump.cancel()
    pump.run()
  }

  @Test("a client that goes ends the observation at once, whenever the next frame would be due")
  func leaves() throws {
    let world = EventCentral()
    let pump = EventPump(on: world)
    pump.addEventCallback { (_: Tick) in }
    let server = try StatisticsServer(world, at: path, every: .seconds(3_600))
    var client: StatisticsClient? = try StatisticsClient(at: path)
    #expect(try client?.next() != nil)
    /// What is dispatched counts only then.
    func isObserved() -> Bool {
      let before = world.statistics.dispatched(Tick.self)
      Tick().queue(on: world)
      pump.run()
      return world.statistics.dispatched(Tick.self) > before
    }
    #expect(isObserved())
    client = nil
    let limit = ContinuousClock.now + .seconds(60)
    while isObserved(), .now < limit { sched_yield() }
    #expect(!isObserved())
    withExtendedLifetime(server) {}
  }

  @Test("D12: frames without a pause, and handlers that take no time, are refused before anybody looks on")
  func wrongTimes() async {
    for result in [
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = try StatisticsServer(EventCentral(), at: "/tmp/none", every: .zero)
      },
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = try StatisticsServer(EventCentral(), at: "/tmp/none", slowerThan: .zero)
      },
    ] {
      let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
      #expect(text.contains("A StatisticsServer sends a frame after a time that is greater than 0"), "\(text)")
    }
  }

  @Test("the socket is its user's alone")
  func mode() throws {
    let server = try StatisticsServer(EventCentral(), at: path)
    var status = stat()
    #expect(lstat(path, &status) == 0)
    #expect(status.st_mode & ~S_IFMT == 0o600)
    #expect(status.st_uid == getuid())
    withExtendedLifetime(server) {}
  }

  @Test("programs that this process starts inherit none of the sockets")
  func inherited() throws {
    let world = EventCentral()
    let server = try StatisticsServer(world, at: path)
    let client = try StatisticsClient(at: path)
    // Now that a frame has come, the server has accepted.
    #expect(try client.next() != nil)
    let sockets = (0..<1024 as Range<Int32>).filter { isOurs($0, getsockname) || isOurs($0, getpeername) }
    #expect(sockets.count == 3)
    for socket in sockets { #expect(fcntl(socket, F_GETFD) == FD_CLOEXEC) }
    withExtendedLifetime((server, client)) {}
  }

  /// Whether one side of a socket is bound to the path of this test.
  private func isOurs(
    _ socket: Int32, _ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> Bool {
    var address = sockaddr_un()
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    return withUnsafeMutableBytes(of: &address) { bytes in
      guard ask(socket, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size) == 0 else { return false }
      return bytes[..<Int(size)].contains(path.utf8)
    }
  }

  @Test("a socket that was left behind is replaced, and another file is not")
  func replaced() throws {
    let world = EventCentral()
    let first = try StatisticsServer(world, at: path)
    let second = try StatisticsServer(world, at: path)
    #expect(try StatisticsClient(at: path).next() != nil)
    withExtendedLifetime((first, second)) {}
    let file = path + ".txt"
    try Data("text".utf8).write(to: URL(filePath: file))
    defer { try? FileManager.default.removeItem(atPath: file) }
    #expect(throws: SocketError.self) { try StatisticsServer(world, at: file) }
    #expect(try String(contentsOf: URL(filePath: file), encoding: .utf8) == "text")
    #expect(throws: SocketError.self) { try StatisticsServer(world, at: String(repeating: "x", count: 200)) }
  }
}
