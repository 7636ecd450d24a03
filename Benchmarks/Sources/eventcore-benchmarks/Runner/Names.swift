// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The shapes, by the names that the results file uses.
enum Shape: String, CaseIterable {
  case oneToOne = "one-to-one"
  case bounded
  case statistics
  case tracing
  case batch64 = "batch-64"
  case fourToOne = "four-to-one"
  case eightToOne = "eight-to-one"
  case sixteenToOne = "sixteen-to-one"
  case thirtyTwoToOne = "thirty-two-to-one"
  case sixteenGap = "sixteen-to-one-longest-gap"
  case endedThreads = "ended-threads"
  case eightHandlers = "eight-handlers"
  case eightMailboxes = "eight-mailboxes"
  case randomLane = "random-lane"
  case idleWake = "idle-wake"
  case idleWakeSpinningProducer = "idle-wake-spinning-producer"
  case spinOneWay = "spin-one-way"
  case pumpFrame = "pump-frame"
  case pumpBatch50 = "pump-batch-50"
  case allocations
  case poolEven = "pool-even"
  case poolUnevenP99 = "pool-uneven-p99"
  case listener
  case eightListeners = "eight-listeners"
  case sequenceOneToOne = "sequence-one-to-one"
  case sequenceOneToEight = "sequence-one-to-eight"
  case requestReply = "request-reply"
  case executorJob = "executor-job"
  case executorCall = "executor-call"
  case executorTask = "executor-task"
  case latestOnlyFlood = "latest-only-flood"
  case conflatedFlood = "conflated-flood"
  case frames240 = "frames-240hz"
  case frames240Overruns = "frames-240hz-overruns"
  case idleMailbox = "idle-mailbox"
  case idleCentral = "idle-central"
  case subscribeChurn10 = "subscribe-churn-10"
  case subscribeChurn10000 = "subscribe-churn-10000"
  case subscribeChurn10Stream = "subscribe-churn-10-stream-p99"
  case subscribeChurn10000Stream = "subscribe-churn-10000-stream-p99"
  case timersInsert = "timers-insert"
  case timersCancel = "timers-cancel"
  case timersLateMedian = "timers-late-p50"
  case timersLate99 = "timers-late-p99"
  case treeBinary = "tree-binary-1000"
  case tree10ary = "tree-10ary-1000"
  case treeFlat = "tree-flat-1000"
  case treeChain = "tree-chain-8"
  case treeConsumed = "tree-consumed"
  case treeChanged = "tree-changed-1000"
  case treePass = "tree-pass"
  case treeMake = "tree-make"
  case treeFree = "tree-free"
  case treeMillion = "tree-1000000"
  case treeChurn = "tree-churn"
  case treeAllocations = "tree-allocations"
  case emitChain = "emit-chain"
  case emitAllocations = "emit-allocations"
  /// Alternatives inside the core; runs only when it is asked for.
  case choices

  var unit: String {
    switch self {
    case .oneToOne, .bounded, .statistics, .tracing, .batch64, .fourToOne, .eightToOne, .sixteenToOne, .thirtyTwoToOne,
      .endedThreads, .randomLane, .pumpFrame, .pumpBatch50, .listener, .poolEven, .choices, .sequenceOneToOne:
      "ns/event"
    case .eightHandlers, .eightMailboxes, .eightListeners, .sequenceOneToEight: "ns/delivery"
    case .latestOnlyFlood, .conflatedFlood: "ns/dispatch"
    case .frames240: "ns, p99.9"
    case .frames240Overruns: "of 240 frames"
    case .idleMailbox, .idleCentral: "bytes"
    case .subscribeChurn10, .subscribeChurn10000: "ns, mean of both"
    case .subscribeChurn10Stream, .subscribeChurn10000Stream: "ns, p99"
    case .idleWake, .idleWakeSpinningProducer: "ns, p50"
    case .requestReply: "ns, p50"
    case .executorJob, .executorTask: "ns/job"
    case .executorCall: "ns/call"
    case .poolUnevenP99: "ns, p99"
    case .spinOneWay: "ns, one way"
    case .allocations: "allocations/event"
    case .timersInsert, .timersCancel: "ns"
    case .treeBinary, .tree10ary, .treeFlat, .treeChanged, .treeChain, .treeMillion, .treeChurn:
      "ns/handler"
    case .treeConsumed: "ns/raise"
    case .treePass, .treeMake, .treeFree: "ns/node"
    case .treeAllocations: "allocations/raise"
    case .emitChain: "ns/event"
    case .emitAllocations: "allocations/event"
    case .sixteenGap: "ns, longest"
    case .timersLateMedian: "ns late, p50"
    case .timersLate99: "ns late, p99"
    }
  }

  /// Counts the allocations of the whole process instead of the time.
  var countsAllocations: Bool { unit.hasPrefix("allocations") }
}

/// The subjects, by the names that the results file uses.
enum Subject: String, CaseIterable {
  case lockFree
  /// The lock-free core, where the events of a batch are made as they are sent.
  case lazyBatches = "lazy-batches"
  case locking
  case rawC = "raw-c"
  /// The lock-free core, C alone and the locking core, where a pump has a deadline.
  case deadline
  case lockingDeadline = "locking-deadline"
  case rawCDeadline = "raw-c-deadline"
  case mutexSwap = "mutex-swap"
  case dispatchQueue = "dispatch-queue"
  case notificationCenter = "notification-center"
  case asyncStream = "async-stream"
  case actor
  case nio
  case openCombine = "opencombine"
  /// EventCore's default core as it is used by default, where the shape is about another use: an
  /// event thread's handler, events one by one, in one lane; a tree of 1,000 nodes.
  case plain
  /// The stream of a churn shape while nobody subscribes; `ended-threads` where no thread has ended.
  case quiet
  /// The lock-free core, where a pump's events are dispatched on its central, and not sent to it alone.
  case central
  /// A recursive tree of classes with typed lists of closures.
  case plainSwift = "plain-swift"
  /// EventCore's coordinators, which are on no core.
  case coordinators
  /// The lock-free core, where the task that asks, or calls, prefers an event thread.
  case preferring
  case futex
  case cacheLine = "cache-line"
  case roundRobin = "round-robin"
  case lowestLoad = "lowest-load"
  /// A pool whose balancer is the user's.
  case ownBalancer = "own-balancer"
  case shared
  /// A bounded mailbox whose policy is to drop the oldest event.
  case dropOldest = "drop-oldest"
  /// What a central that is observed pays: nothing is timed, one of 64 events, all of them; a trace of one of 100, of all.
  case counting
  case sampling64 = "sampling-64"
  case timing
  case tracing100 = "tracing-100"
  case tracing
  case bareThreads = "bare-threads"
  case dispatchSource = "dispatch-source"
  case coreInbox = "core-inbox"
  case coreInboxAlone = "core-inbox-alone"
  case calledWfcq = "called-wfcq"
  case calledWfcqAlone = "called-wfcq-alone"
  case timerHeapInsert = "timer-heap-insert"
  case timerHeapCancel = "timer-heap-cancel"
  case timerHeapFire = "timer-heap-fire"
  case timerHeapLongest = "timer-heap-longest"
  case timerWheelInsert = "timer-wheel-insert"
  case timerWheelCancel = "timer-wheel-cancel"
  case timerWheelFire = "timer-wheel-fire"
  case timerWheelLongest = "timer-wheel-longest"

  /// Calls the handlers on the thread that posts, so that nothing crosses threads.
  var isSynchronous: Bool { self == .notificationCenter || self == .openCombine }
}
