// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Testing

@testable import EventCore

@Suite("A descriptor that wakes a loop")
struct WakeDescriptorTests {
  @Test("It is readable from a signal to the next clear", arguments: [false, true])
  func readable(isPipe: Bool) {
    let descriptor = WakeDescriptor(prefersPipe: isPipe)
    for signals in [1, 2, 3, 512, 513, 100_000] {
      #expect(!descriptor.wait(until: 0))
      // A pipe is full after some of them, and that delays nobody.
      for _ in 0..<signals { descriptor.signal() }
      #expect(descriptor.wait(until: 0))
      #expect(descriptor.wait(until: .max))
      descriptor.clear()
      #expect(!descriptor.wait(until: monotonicNanoseconds() + 1_000_000))
      descriptor.clear()
    }
  }

  @Test("A wait takes as long as it was told to", arguments: [false, true])
  func waiting(isPipe: Bool) {
    let descriptor = WakeDescriptor(prefersPipe: isPipe)
    for span: UInt64 in [1, 1_000, 300_000, 2_500_000] {
      let deadline = monotonicNanoseconds() + span
      #expect(!descriptor.wait(until: deadline))
      #expect(monotonicNanoseconds() >= deadline)
    }
  }
}
