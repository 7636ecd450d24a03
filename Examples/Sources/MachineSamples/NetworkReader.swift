// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Network: `/proc/net/dev`, with two lines of headings and one line for each interface.
enum NetworkReader {
  static let path = "/proc/net/dev"

  static func parse(_ line: inout ByteScanner, at time: UInt64, into samples: inout [Sample]) {
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
        // The columns between: errs drop fifo frame compressed multicast.
        line.skipWords(6)
        event.sentBytes &+= line.number() ?? 0
        event.packets &+= line.number() ?? 0
      }
      line.skipLine()
    }
    samples.append(.network(event))
  }
}
