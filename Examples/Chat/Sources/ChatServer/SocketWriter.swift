// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import FlyingFox
import Foundation

/// Makes the frames for one browser, each when the server asks for it, which it does when its socket has taken the one
/// before. Until then, lines wait in the browser's seat, where they are bounded.
actor SocketWriter {
  /// How many lines go into a frame, if so many wait. A frame costs a system call, a line nearly nothing.
  private static let batch = 64
  /// How long a browser may take to answer the close frame.
  private static let patience = Duration.seconds(2)

  private let seat: Seat
  private let world: EventCentral
  private let counts: ChatCounts
  private let open: DispatchGroup
  private let reader: Task<Void, Never>
  private var frames: [WSFrame] = []
  /// Of the answers in these frames.
  private var turns: [Seat.Turn] = []
  private var isClosing = false
  private var missed: UInt64 = 0

  init(
    _ seat: Seat, on world: EventCentral, counts: ChatCounts, open: DispatchGroup, reader: Task<Void, Never>
  ) {
    self.seat = seat
    self.world = world
    self.counts = counts
    self.open = open
    self.reader = reader
    open.enter()
  }

  /// However the web socket ends, the server lets go of its frames.
  deinit {
    reader.cancel()
    seat.mailbox.end()
    Left(seat: seat).queue(on: world)
    open.leave()
  }

  /// The next frame; nil when the web socket is to be closed.
  func next() async -> WSFrame? {
    if frames.isEmpty, isClosing {
      await readerEnded()
    } else if frames.isEmpty {
      // The socket has taken the last one.
      turns = []
      await gather()
    }
    return frames.isEmpty ? nil : frames.removeFirst()
  }

  /// Waits for a line, and takes those that wait with it.
  private func gather() async {
    var texts: [String] = []
    for await line in seat.lines {
      switch line {
      case .text(let text): texts.append(text)
      case .reply(let text, let turn):
        texts.append(text)
        turns.append(turn)
      case .pong(let data): frames.append(WSFrame(fin: true, opcode: .pong, mask: nil, payload: data))
      case .close(let code):
        frames.append(.close(code: code))
        isClosing = true
      }
      if isClosing || texts.count == Self.batch || seat.lines.waitingEventCount == 0 { break }
    }
    let lag = seat.lines.lag
    if lag > missed, !(texts.isEmpty && frames.isEmpty) {
      texts.append(Notice.missed(count: lag - missed).json)
      counts.missed.increment(by: Int64(lag - missed))
      missed = lag
    }
    guard !texts.isEmpty else { return }
    let payload = Data(texts.joined(separator: "\n").utf8)
    frames.insert(WSFrame(fin: true, opcode: .text, mask: nil, payload: payload), at: 0)
  }

  /// Reads on until the browser has answered the close frame: closing a socket with something unread would take away
  /// what is still on its way to the browser.
  private func readerEnded() async {
    let limit = Task { [reader] in
      try? await Task.sleep(for: Self.patience)
      reader.cancel()
    }
    await reader.value
    limit.cancel()
  }
}
