// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a pool or a listener thread adds to a consumer; empty for all others.
struct ConsumerHooks: Sendable {
  /// A listener thread's periodic work.
  var upkeep: (@Sendable (Upkeep) -> Void)?
  /// Counts the consumer's events for a pool.
  var member: PoolMember?
  /// The shared mailbox that the consumer is a worker of.
  var shared: SharedMailbox?
  /// Its name in the traces of a deterministic central.
  var trace: TraceName?
  /// Of a consumer from which a task takes its events, in a central with a carrier.
  var taken: TakenValue?
  /// Its name in statistics.
  var name = "consumer"
}

/// When a listener thread does its periodic work.
@usableFromInline
enum Upkeep {
  /// Before every `waitsBetween`-th wait.
  case whenDry
  /// After every `eventsBetween`-th event, for a thread that never waits.
  case whileBusy

  /// A multiple of `Consumer.Held.events`. Checking 32 listeners takes some 1 µs, which is 0.2 ns for each event.
  @inlinable static var eventsBetween: UInt64 { 4096 }
  /// A stream of events may let the thread run dry after each of them.
  static let waitsBetween: UInt64 = 16
}

/// A worker's receivers by the indices of its shared mailbox's entries. The consumer's thread only.
struct SharedReceivers: ~Copyable {
  // Not retained: a receiver lives as long as its consumer's mailbox, whose run loop uses the table. A
  // latest-only receiver ends with its handler, and is removed from here first.
  private var table: UnsafeMutablePointer<Unmanaged<Receiver>?>?
  private var count = 0
  /// How many elements the table gets beyond what is needed.
  private static let reserve = 8

  deinit {
    table?.deallocate()
  }

  subscript(index: Int) -> Unmanaged<Receiver>? {
    @inline(__always) get {
      // Not nil if the count is not 0.
      index < count ? table.unsafelyUnwrapped[index] : nil
    }
  }

  /// Removes a receiver that is about to end.
  mutating func remove(_ receiver: Receiver) {
    let gone = Unmanaged.passUnretained(receiver).toOpaque()
    for index in 0..<count where table.unsafelyUnwrapped[index]?.toOpaque() == gone {
      table.unsafelyUnwrapped[index] = nil
    }
  }

  mutating func set(_ index: Int, _ receiver: Receiver) {
    if index >= count {
      let new = UnsafeMutablePointer<Unmanaged<Receiver>?>.allocate(capacity: index + Self.reserve)
      new.initialize(repeating: nil, count: index + Self.reserve)
      if let table {
        new.update(from: table, count: count)
        table.deallocate()
      }
      table = new
      count = index + Self.reserve
    }
    table.unsafelyUnwrapped[index] = Unmanaged.passUnretained(receiver)
  }
}

extension Consumer {
  /// Calls this worker's handlers for an event from the shared mailbox. The consumer's thread only.
  ///
  /// - Returns: Whether the payload was moved out.
  @inline(__always)
  func deliverShared(
    _ entry: SharedMailbox.Entry, _ payload: UnsafeMutableRawPointer,
    _ envelope: UnsafeMutableRawPointer, owned: Bool
  ) -> Bool {
    var found = workerReceivers.pointee[entry.index]
    // An ended receiver's ordinal may belong to a new one. Relaxed: that one was registered before this
    // event was dispatched, and taking the event orders the two. (The registry would take a lock.)
    if found?._withUnsafeGuaranteedRef({ $0.isOver.load(ordering: .relaxed) }) != false {
      found = findReceiver(entry)
    }
    guard let receiver = found else {
      didCall(false, HandledCounts(calls.counts.memory))
      return false
    }
    return receiver._withUnsafeGuaranteedRef { receiver in
      // Workers share an entry's generations. A generation that another worker has begun counts as the last
      // one before it that this worker knows; and events that are older than this worker are for all
      // handlers that it began with. A handler that was registered before the dispatch was also registered
      // before this load.
      let word = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
      let addressed = word & ~EnvelopeLayout.mark
      envelope.storeBytes(
        of: min(max(addressed, receiver.firstGeneration), receiver.generation) | word & EnvelopeLayout.mark,
        toByteOffset: EnvelopeLayout.generation, as: UInt32.self)
      guard addressed >= receiver.firstGeneration else {
        return receiver.deliverOld(payload, UnsafeRawPointer(envelope), owned: owned, generation: addressed)
      }
      return receiver.deliver(payload, UnsafeRawPointer(envelope), owned: owned)
    }
  }

  @inline(never)
  private func findReceiver(_ entry: SharedMailbox.Entry) -> Unmanaged<Receiver>? {
    guard let receiver = registry.receiver(for: entry) else { return nil }
    workerReceivers.pointee.set(entry.index, receiver)
    return Unmanaged.passUnretained(receiver)
  }
}
