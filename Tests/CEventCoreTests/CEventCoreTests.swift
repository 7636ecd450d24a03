// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CEventCoreSuite
import Testing

/// One test function in C, known to Swift by its place in the table.
struct CoreTest: Sendable, CustomTestStringConvertible {
  let index: Int
  let testDescription: String

  /// The whole table; empty in a build without the C core.
  static let all: [CoreTest] = {
    var count = 0
    guard let tests = evc_suite_tests(&count) else { return [] }
    return (0..<count).map { index in
      CoreTest(index: index, testDescription: String(cString: tests[index].name))
    }
  }()

  /// What was expected and found, or nil if the test holds.
  func run() -> String? {
    var count = 0
    guard let tests = evc_suite_tests(&count), index < count else {
      return "the table of tests has changed"
    }
    // The text belongs to this thread until its next test: copied before anything else can run.
    return tests[index].run().map { String(cString: $0) }
  }
}

// One at a time, since some tests replace the allocator and all of them look at its counts.
@Suite("The C core", .serialized)
struct CEventCoreTests {
  #if URCU
    @Test("holds:", arguments: CoreTest.all)
    func holds(_ test: CoreTest) {
      let message = test.run()
      #expect(message == nil, "\(message ?? "")")
    }

    @Test func theTableIsNotEmpty() {
      #expect(CoreTest.all.count > 50)
    }
  #else
    @Test func theTableIsEmptyWithoutTheCore() {
      #expect(CoreTest.all.isEmpty)
    }
  #endif
}
