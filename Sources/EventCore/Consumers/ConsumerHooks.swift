// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a pool or a listener thread adds to a consumer; nothing, for most.
struct ConsumerHooks: Sendable {
  /// What a listener thread does between two events and before a wait now and then.
  var upkeep: (@Sendable (Upkeep) -> Void)?
  /// Counts the consumer's events for a pool.
  var member: PoolMember?
  /// What the consumer takes from beside its own mailbox, as a worker.
  var shared: SharedMailbox?
}

/// When a listener thread does what is to be done now and then.
@usableFromInline
enum Upkeep {
  /// Before some of its waits.
  case whenDry
  /// After some events, for a thread that never comes to wait.
  case whileBusy

  /// How many events: to look at 32 listeners takes some 1 µs, which is 0.2 ns for each event.
  @inlinable static var eventsBetween: UInt64 { 4096 }
  /// How many waits: a stream of events may let it run dry after each.
  static let waitsBetween: UInt64 = 16
}

/// The receivers of a worker by the entries of its shared mailbox. The consumer's thread only.
struct SharedReceivers: ~Copyable {
  // Not retained: a receiver lives as long as its consumer's mailbox, whose run loop calls us; one
  // that wants the latest event only ends with its handler, and is removed before.
  private var table: UnsafeMutablePointer<Unmanaged<Receiver>?>?
  private var count = 0
  /// How many elements more than are needed it gets.
  private static let reserve = 8

  deinit {
    table?.deallocate()
  }

  subscript(index: Int) -> Unmanaged<Receiver>? {
    @inline(__always) get {
      // There if anything counts: it is made with the first entry.
      index < count ? table.unsafelyUnwrapped[index] : nil
    }
  }

  /// Takes a receiver out that is about to end.
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
  /// Calls this worker's handlers for an event that it took from the shared mailbox. The consumer's
  /// thread only.
  ///
  /// - Returns: Whether the payload was moved out.
  @inline(__always)
  func deliverShared(
    _ entry: SharedMailbox.Entry, _ payload: UnsafeMutableRawPointer,
    _ envelope: UnsafeMutableRawPointer, owned: Bool
  ) -> Bool {
    var found = workerReceivers.pointee[entry.index]
    // Relaxed: its ordinal may be another's, who was registered before this event was dispatched; the
    // event orders it. (What is asked here of the others would do, and is a lock.)
    if found?._withUnsafeGuaranteedRef({ $0.isOver.load(ordering: .relaxed) }) != false {
      found = findReceiver(entry)
    }
    guard let receiver = found else {
      didCall(false)
      return false
    }
    return receiver._withUnsafeGuaranteedRef { receiver in
      // A generation that others of the workers have begun is the last of this one's before it, and
      // what is older than the worker is for all that it has brought along. A handler whose
      // registration happened before the dispatch happened before this load too.
      let addressed = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
      envelope.storeBytes(
        of: min(max(addressed, receiver.firstGeneration), receiver.generation),
        toByteOffset: EnvelopeLayout.generation, as: UInt32.self)
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
