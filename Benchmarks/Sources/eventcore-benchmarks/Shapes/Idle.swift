// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import AllocationCounter
import EventCore
import RawCore

#if canImport(Glibc)
  import Glibc
#endif

// How many bytes something takes that was made and is not used yet: the mean of many. Checked: no thread was made.

/// The candidates of both shapes.
func idleCandidates() -> [Candidate] {
  func candidate(_ shape: Shape, _ subject: Subject, _ make: @escaping () -> any Trial) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size, make: make)
  }
  return [
    candidate(.idleMailbox, .rawC) { Idle(make: { evb_mailbox_make() }, release: { evb_mailbox_end($0) }) },
    candidate(.idleCentral, .lockFree) { Idle(make: { EventCentral(core: .lockFree) }, release: { _ in }) },
    candidate(.idleCentral, .locking) { Idle(make: { EventCentral(core: .locking) }, release: { _ in }) },
  ]
}

private final class Idle<Object>: Trial {
  private let make: () -> Object
  private let release: (Object) -> Void
  private let count = 100

  init(make: @escaping () -> Object, release: @escaping (Object) -> Void) {
    (self.make, self.release) = (make, release)
    // What the process keeps for good.
    release(make())
  }

  func run() -> Double {
    var objects: [Object] = []
    objects.reserveCapacity(count)
    let before = threadCount()
    evb_allocations_arm()
    for _ in 0..<count { objects.append(make()) }
    let counted = evb_allocations_disarm()
    check(threadCount() == before, "What is idle has made threads.")
    objects.forEach(release)
    return Double(counted.bytes) / Double(count)
  }

  func end() {}
}

/// The threads of this process; 0 where the system does not list them.
private func threadCount() -> Int {
  #if canImport(Glibc)
    guard let folder = opendir("/proc/self/task") else { return 0 }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    return count
  #else
    return 0
  #endif
}
