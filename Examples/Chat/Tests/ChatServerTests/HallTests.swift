// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import Testing

@testable import ChatServer

@Suite(.timeLimit(.minutes(2)))
struct HallTests {
  struct Pause: Eventable {}

  @Test("A seat for a browser that was gone before it got it is given back")
  func lateSeat() async throws {
    let world = EventCentral()
    let hall = Hall.open(on: world, buffer: 16, counts: ChatCounts(TextMetrics()))
    let (paused, goOn) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    hall.thread.addEventCallback { (_: Pause) in
      paused.continuation.yield()
      goOn.wait()
    }
    Pause().queue(on: world)
    _ = await paused.stream.first { true }
    let joining = Task { try await world.request(Join(name: "anna", room: "lobby"), expecting: Seat.self) }
    while hall.thread.eventCount == 0 { await Task.yield() }
    joining.cancel()
    await #expect(throws: CancellationError.self) { try await joining.value }
    goOn.signal()
    // The hall takes this behind the request, and perhaps before the seat comes back.
    var names = ["anna"]
    while !names.isEmpty {
      names = try await world.request(WhoIsHere(room: "lobby"))
    }
    #expect(await hall.thread.drain())
  }
}
