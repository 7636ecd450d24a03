// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Testing

@testable import EventCore

@Suite("Swift reads the walks of both cores")
struct TreeLayoutTests {
  // The C core asserts the same numbers where it declares the structures (tree_private.h,
  // tree_walker.h).
  @Test("the fields of a walk lie where the C core asserts them")
  func walk() {
    #expect(MemoryLayout<TreeWalk>.offset(of: \.registrations) == 0)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.objects) == 8)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.count) == 16)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.phase) == 20)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.current) == 24)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.published) == 28)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.calling) == 32)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.first) == 40)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.attention) == 44)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.scope) == 45)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.lastRemoval) == 48)
    #expect(MemoryLayout<TreeWalk>.offset(of: \.seen) == 56)
  }
}
