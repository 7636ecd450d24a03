// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Trees: handlers run on the thread that raises")
struct TreeRaisingThreadTests {
  /// An event that notes the threads on which it is handled.
  struct Trace: Eventable { let threads = Log<UInt>() }

  final class Owner: Sendable {
    func onTrace(_ event: Trace) { event.threads.append(currentThread()) }
  }

  @Test("handlers of every form run on the raising thread, whoever added them", arguments: cores)
  func everyForm(core: EventCentral.Core) async {
    let root = EventNode(core: core)
    let node = EventNode(parent: root)
    let owner = Owner()
    let all: CaptureMode = [.onCapture, .onRaise, .onPropagate]
    root.addHandler(all) { (event: Trace) in event.threads.append(currentThread()) }
    // Added on the main thread, which makes no difference.
    await MainActor.run {
      _ = node.addHandler(all, for: Trace.self) { context in
        context.event.threads.append(currentThread())
        return .continue
      }
      node.addHandler(all, owner: owner, Owner.onTrace)
    }
    let (threads, wrong) = (Log<UInt>(), Log<[UInt]>())
    @Sendable func raise() {
      let event = Trace()
      let outcome = node.raise(event: event)
      // All handlers have run when the raise returns.
      let found = event.threads.entries
      if outcome.handlerCount != 9 || found != Array(repeating: currentThread(), count: 9) {
        wrong.append(found)
      }
    }
    await offThePool {
      onThreads(4) { _ in
        threads.append(currentThread())
        for _ in 0..<200 { raise() }
      }
    }
    await MainActor.run {
      threads.append(currentThread())
      raise()
    }
    #expect(wrong.entries.isEmpty)
    #expect(Set(threads.entries).count > 1)
  }

  @Test("several threads are in the same handler at once", arguments: cores)
  func atOnce(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let node = EventNode(parent: root)
    let inside = Atomic<Int>(0)
    for phase in [CaptureMode.onCapture, .onRaise, .onPropagate] {
      inside.store(0, ordering: .relaxed)
      let met = Log<Bool>()
      // Each call waits for the others.
      let handle = root.addHandler(phase) { (_: Note) in
        inside.wrappingAdd(1, ordering: .acquiringAndReleasing)
        met.append(waitUntil { inside.load(ordering: .acquiring) == 3 })
      }
      onThreads(3) { _ in node.raise(event: Note()) }
      #expect(met.entries == [true, true, true])
      handle.remove()
    }
  }
}
