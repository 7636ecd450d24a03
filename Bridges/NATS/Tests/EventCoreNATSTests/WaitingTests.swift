// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreNATS
import Foundation
import Testing

/// A bridge whose server is not there, while something else is at the address.
@Suite struct WaitingTests {
  private func bridge(
    to server: NATSServer, _ log: Log<NATSStatus.Change>, on world: EventCentral, waits: Bool = true
  ) async throws -> NATSBridge {
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    var options = NATSBridge.Options()
    options.waitsForServer = waits
    options.reconnecting = .init(first: .milliseconds(5), longest: .milliseconds(20))
    return try await NATSBridge(server, on: world, options: options)
  }

  private func faults(_ log: Log<NATSStatus.Change>) -> [String] {
    log.entries.compactMap { if case .fault(let text) = $0 { text } else { nil } }
  }

  private func fault(_ log: Log<NATSStatus.Change>) -> String? { faults(log).first }

  @Test("what ends each connection at first, as before a server that is not up yet, is told and waited for")
  func endsEachConnection() async throws {
    let server = try ServerProcess()
    server.stop()
    let door = try ShutDoor(port: server.port)
    let (world, log) = (EventCentral(), Log<NATSStatus.Change>())
    let bridge = try await bridge(to: .url(server.url), log, on: world)
    bridge.publish(Reading.self)
    Reading(number: 1).queue(on: world)
    #expect(await eventually(within: .seconds(20)) { door.knocks >= 3 && fault(log) != nil })
    door.end()
    try server.restart()
    #expect(await eventually(within: .seconds(20)) { bridge.counts.sent == 1 })
    #expect(await bridge.drain())
    #expect(await eventually { log.entries.last == .closed })
    #expect(log.entries.dropFirst().dropLast() == [.connected], "The fault was told once: \(log.entries)")
  }

  @Test("a server that is not the right one is told, and waited for")
  func withoutTLS() async throws {
    let server = try ServerProcess()
    let (world, log) = (EventCentral(), Log<NATSStatus.Change>())
    let bridge = try await bridge(to: .url(server.url, tls: .init()), log, on: world)
    #expect(await eventually(within: .seconds(20)) { fault(log) != nil })
    #expect(fault(log)?.lowercased().contains("secure") == true, "\(log.entries)")
    #expect(!log.entries.contains(.closed))
    bridge.close()
  }

  @Test("what keeps a bridge from coming back is told in each outage, once")
  func comesBack() async throws {
    let server = try ServerProcess()
    let (world, log) = (EventCentral(), Log<NATSStatus.Change>())
    let bridge = try await bridge(to: .url(server.url), log, on: world, waits: false)
    for outage in 1...2 {
      server.stop()
      let door = try ShutDoor(port: server.port)
      #expect(await eventually(within: .seconds(20)) { door.knocks >= 3 && faults(log).count >= outage })
      door.end()
      try server.restart()
      #expect(await eventually(within: .seconds(20)) { bridge.isConnected })
    }
    #expect(await bridge.drain())
    #expect(await eventually { log.entries.last == .closed })
    #expect(faults(log).count == 2, "\(log.entries)")
    #expect(log.entries.filter { $0 == .disconnected || $0 == .reconnected }.count == 4, "\(log.entries)")
  }

  @Test("settling and the drain of a registration keep their limits while the client waits for a silent server")
  func silentServer() async throws {
    let server = try ServerProcess()
    let cable = try Cable(to: server)
    // As long as the client has its lock.
    let bridge = try await NATSBridge.to(cable.url, on: EventCentral()) { $0.connectTimeout = .seconds(20) }
    let registration = try bridge.subscribe(Reading.self)
    try await bridge.settle()
    cable.swallow(.toClient)
    server.stop()
    try server.restart()
    #expect(await eventually { cable.swallowed("INFO {") > 0 })
    let begin = ContinuousClock.now
    await #expect { try await bridge.settle(within: .milliseconds(50)) } throws: {
      ($0 as? NATSBridgeError)?.reason == .timedOut
    }
    #expect(await !registration.drain(within: .milliseconds(50)))
    #expect(begin.duration(to: .now) < .seconds(10))
    cable.cut()
    #expect(await eventually { !registration.isActive }, "It comes to its end when the client does.")
    bridge.close()
  }

  @Test("of several servers any one that is there will do", arguments: 0..<4)
  func several(_ round: Int) async throws {
    let (gone, there) = (try ServerProcess(), try ServerProcess())
    gone.stop()
    let (world, log) = (EventCentral(), Log<NATSStatus.Change>())
    let bridge = try await bridge(to: .urls([gone.url, there.url]), log, on: world)
    #expect(await eventually(within: .seconds(20)) { bridge.isConnected })
    #expect(await bridge.drain())
  }
}

/// Takes each connection to a port, and ends it at once.
private final class ShutDoor: Sendable {
  private let listener: Int32
  private let log = Log<Void>()
  private let isOver = DispatchSemaphore(value: 0)
  var knocks: Int { log.count }

  init(port: Int) throws {
    // SOCK_STREAM, which is of another type on each system.
    let listener = socket(AF_INET, .init(1), 0)
    var yes = Int32(1)
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = .init(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isReady = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 && listen(listener, 16) == 0
      }
    }
    guard isReady else { throw CocoaError(.executableNotLoadable) }
    self.listener = listener
    Thread.detachNewThread { [log, isOver] in
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { break }
        close(client)
        log.append(())
      }
      close(listener)
      isOver.signal()
    }
  }

  /// Returns when the port is free. Once.
  func end() {
    shutdown(listener, .init(SHUT_RDWR))
    isOver.wait()
  }
}
