// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Network: `/proc/net/dev`, one line for each interface below two lines of headings.
struct NetworkReader {
  private let file: ProcFile

  init() throws {
    file = try ProcFile("/proc/net/dev")
  }

  func read(at time: UInt64, into samples: inout [Sample]) throws {
    try file.read { line in
      var event = NetworkEvent(time: time, receivedBytes: 0, sentBytes: 0, packets: 0)
      line.skipLine()
      line.skipLine()
      while !line.isAtEnd {
        line.skipSpaces()
        if !line.take("lo:") {
          _ = line.word(until: UInt8(ascii: ":"))
          _ = line.take(":")
          event.receivedBytes &+= line.number() ?? 0
          event.packets &+= line.number() ?? 0
          // errs drop fifo frame compressed multicast
          line.skipWords(6)
          event.sentBytes &+= line.number() ?? 0
          event.packets &+= line.number() ?? 0
        }
        line.skipLine()
      }
      samples.append(.network(event))
    }
  }
}
