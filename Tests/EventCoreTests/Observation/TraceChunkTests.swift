// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("The records of a trace")
struct TraceChunkTests {
  @Test("records come back as they were written, however long their times are, and whatever they are of")
  func records() {
    let consumer = ConsumerProbe("receiver", 0, of: 0)
    let keys = [eventKey(Step.self), eventKey(Echo.self)]
    let probes = keys.map { ReceiverProbe($0, of: consumer) }
    let times: [UInt64] = [0, 1, 1 << 32 - 1, 1 << 32, 1 << 61 - 1, 1 << 61, UInt64.max]
    var records: [TraceRecord] = []
    for begin in times {
      records += [keys[0], keys[0], keys[1]].map { TraceRecord.dispatch(of: $0, at: begin) }
      for (waited, handled) in times.flatMap({ waited in times.map { (waited, $0) } }) {
        records.append(.handling(by: probes[records.count % 3 / 2], from: begin, waited: waited, handled: handled))
      }
    }
    let chunk = TraceChunk(thread: 0, name: "", capacity: records.count)
    for record in records { #expect(chunk.append(record)) }
    #expect(!chunk.append(records[0]))
    func parts(_ record: TraceRecord) -> [UInt64] {
      [UInt64(record.key ?? record.probe), record.begin, record.waited, record.handled]
    }
    #expect(chunk.all.map(parts) == records.map(parts))
  }
}
