// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What observes one central: who looks on, and what for; and the receivers and threads that count.
///
/// One file, though long: who looks on is written in one place, and read by each dispatch and each receiver.
///
/// While somebody looks on, the central's routers tell it of dispatches (`note`) or count them themselves, and its
/// receivers count in their probes. Both begin and end with an event: whatever is dispatched after `change` has returned
/// is counted. Some events are marked, and those the receivers also measure (`Receiver.deliverMeasured`).
///
/// Synchronization: `sampling`, `limit`, `traceAddress` and `isOn` are written under `changing`, and read by any thread,
/// relaxed: a change that comes a moment later is no harm. `state` has a mutex. Lock order: `changing`, then those of
/// consumers' registries, then `state`.
@usableFromInline
final class Instruments: Sendable {
  /// Unique in the process.
  let number: UInt64
  private let clock: CentralClock?
  /// The receiver whose handler runs on the calling thread, not retained; nil outside of handlers.
  private let current: @Sendable () -> Unmanaged<ConsumerProbe>?
  /// Has the calling thread forget where the core counts.
  private let forgetTallies: @Sendable () -> Void
  /// A copy of the global constant, each use of which would ask whether it has been made.
  private let threads = InstrumentedThread.all
  /// The key of consumers' own jobs, which are no events of the user's. A copy likewise.
  private let jobs = UInt(bitPattern: ObjectIdentifier(ConsumerJob.self))

  private let isOn = Atomic<Bool>(false)
  /// One of so many events is timed; 0 for none.
  let sampling = Atomic<UInt32>(0)
  /// Handlers that take so many nanoseconds are slow; `.max` if nobody wants to know.
  let limit = Atomic<UInt64>(.max)
  private let traceAddress = Atomic<UInt>(0)

  /// What somebody who looks on wants.
  struct Wish: Sendable {
    /// As `sampling`.
    var sampling: UInt32 = 0
    var limit: UInt64 = .max
    /// Told of a handler that took as long as `limit`, on its thread.
    var slow: (@Sendable (_ receiver: any Instrumented, _ key: UInt, _ time: UInt64) -> Void)?
    var trace: TraceBuffer?
  }

  private struct WeakReceiver: Sendable {
    weak let receiver: (any Instrumented)?
  }

  private struct SourceKey: Hashable {
    let name: String?
    let source: String?
    let key: UInt
  }

  private struct Name {
    /// The number of the last receiver that got it, and how many have it.
    var last = 0
    var live = 0
  }

  private struct State {
    var names: [String: Name] = [:]
    /// Of the receivers that have not ended, each of which has one to itself.
    var labels: Set<String> = []
    var count = 0
    var wishes: [Int: Wish] = [:]
    /// By the numbers of their probes, which grow.
    var receivers: [Int: WeakReceiver] = [:]
    var dispatches: [ObjectIdentifier: DispatchCount] = [:]
    /// What ended threads and receivers have counted.
    var past: [SourceKey: UInt64] = [:]
    var ended: [String: ReceiverReading] = [:]
    /// The traces that there have been. A thread may be about to append to one that has ended.
    var traces: [TraceBuffer] = []
  }
  private let state = Guarded(State())
  private let changing = Guarded(())

  private static let count = Atomic<UInt64>(0)

  init(
    _ clock: CentralClock?, source: @escaping @Sendable () -> Unmanaged<ConsumerProbe>?,
    forgetTallies: @escaping @Sendable () -> Void
  ) {
    self.forgetTallies = forgetTallies
    number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    self.clock = clock
    current = source
  }

  /// Whether somebody looks on.
  var isObserved: Bool { isOn.load(ordering: .relaxed) }
  /// Whether somebody wants to know of slow handlers, for which all events are measured.
  var isWatching: Bool { limit.load(ordering: .relaxed) != .max }
  var now: UInt64 { clock?.now ?? monotonicNanoseconds() }

  /// The trace that is being made. `State.traces` retains it.
  @inline(__always)
  var trace: Unmanaged<TraceBuffer>? {
    // Acquiring, pairs with `change`: the trace is complete.
    UnsafeRawPointer(bitPattern: traceAddress.load(ordering: .acquiring)).map { .fromOpaque($0) }
  }

  // MARK: A dispatch

  /// What an observer says of a dispatch.
  struct Note {
    /// The time that its events bear; 0 for none.
    var time: UInt64 = 0
    /// Whether receivers measure the events, which bear a time then.
    var isMeasured = false
    /// As `DispatchCount.tally`; nil to be told of the next dispatch as well.
    var tally: UnsafeMutableRawPointer?
  }

  /// Counts a dispatch, on its thread. `isTimed`: a handler needs the time.
  func note(_ key: UInt, _ events: Int, isTimed: Bool) -> Note {
    guard key != jobs else { return Note(time: isTimed ? now : 0) }
    return thread._withUnsafeGuaranteedRef { thread in
      let every = sampling.load(ordering: .relaxed)
      return thread.count(key, source(), self)._withUnsafeGuaranteedRef { count in
        guard count.add(events, every) else { return Note(time: isTimed ? now : 0, tally: count.tally) }
        return Note(time: noteMeasured(key, thread, isTimed: isTimed), isMeasured: true, tally: count.tally)
      }
    }
  }

  /// `current` if it is a receiver of this central. Figures name no others, whose names may be the same.
  @inline(__always)
  private func source() -> Unmanaged<ConsumerProbe>? {
    guard let current = current(), current._withUnsafeGuaranteedRef({ $0.central }) == number else { return nil }
    return current
  }

  @inline(never)
  private func noteMeasured(_ key: UInt, _ thread: InstrumentedThread, isTimed: Bool) -> UInt64 {
    // Handlers are given what the clock itself shows.
    let time = clock?.now ?? (isTimed ? monotonicNanoseconds() : thread.now())
    trace?._withUnsafeGuaranteedRef {
      Signposts.noteDispatch(key)
      $0.append(.dispatch(of: key, at: time), thread, source())
    }
    return time
  }

  /// What the calling thread keeps, until it ends.
  @inline(__always)
  var thread: Unmanaged<InstrumentedThread> { threads.kept(or: { InstrumentedThread(forgetTallies) }) }

  /// The time as that thread measures it, not before one that has passed.
  @inline(__always)
  func now(_ thread: InstrumentedThread, after time: UInt64) -> UInt64 {
    clock.map { max(time, $0.now) } ?? thread.now(after: time)
  }

  /// Adds the handling of an event to the trace, if there is one. The consumer's thread.
  @inline(__always)
  func trace(
    _ probe: ReceiverProbe, from begin: UInt64, waited: UInt64, handled: UInt64, _ thread: InstrumentedThread
  ) {
    trace?._withUnsafeGuaranteedRef { trace in
      trace.keep(probe)
      trace.append(.handling(by: probe, from: begin, waited: waited, handled: handled), thread, source())
    }
  }

  func add(_ count: DispatchCount) {
    state.withLock { $0.dispatches[ObjectIdentifier(count)] = count }
  }

  /// Keeps what a count has, which nobody raises any more.
  func fold(_ count: DispatchCount) {
    state.withLock { state in
      guard state.dispatches.removeValue(forKey: ObjectIdentifier(count)) != nil else { return }
      let key = SourceKey(name: count.source?.name, source: count.source?.source, key: count.key)
      state.past[key, default: 0] += count.value
    }
  }

  // MARK: Receivers

  /// Makes the probe of a receiver.
  func makeProbe(_ name: String) -> ConsumerProbe {
    let ordinal = state.withLock { state in
      var named = state.names[name] ?? Name()
      // A receiver may have been named as another one is labelled.
      repeat { named.last += 1 } while !state.labels.insert(ConsumerProbe.label(name, named.last)).inserted
      named.live += 1
      state.names[name] = named
      return named.last
    }
    return ConsumerProbe(name, ordinal, of: number)
  }

  /// For tests.
  var nameCount: Int { state.withLock { $0.names.count } }

  /// Adds a receiver that is complete.
  func add(_ receiver: any Instrumented) {
    state.withLock { $0.receivers[receiver.probe.number] = WeakReceiver(receiver: receiver) }
    if isObserved { receiver.followInstruments() }
  }

  /// Removes a receiver that counts nothing more, and keeps what it has counted: if somebody has looked on, or the name
  /// has figures, whose sum it belongs to. `reading` is asked for only then. A second call does nothing.
  func remove(_ probe: ConsumerProbe, _ reading: () -> ReceiverReading) {
    guard probe.end() else { return }
    // Of one without probes as well, which has had jobs alone.
    let isKept = probe.hasProbes || isObserved || state.withLock { $0.ended[probe.name] != nil }
    var last = isKept ? reading() : nil
    // A dispatch that still holds events for it frees them, and nobody would read that count.
    last?.endWaiting()
    state.withLock { state in
      state.receivers[probe.number] = nil
      state.labels.remove(probe.label)
      // What it dispatched on threads that ended before it.
      for (key, count) in state.past where key.source == probe.label {
        state.past[key] = nil
        state.past[SourceKey(name: key.name, source: probe.source, key: key.key), default: 0] += count
      }
      if let last { state.ended[probe.name] = state.ended[probe.name].map { $0 + last } ?? last }
      state.names[probe.name]?.live -= 1
      // A program may have a name for each session.
      if state.names[probe.name]?.live == 0, state.ended[probe.name] == nil { state.names[probe.name] = nil }
    }
  }

  /// The receivers, by age.
  var receivers: [any Instrumented] { receiversAndEnded.receivers }

  /// As of one moment, so that none is in both. (One that is just being freed may be in neither.)
  private var receiversAndEnded: (receivers: [any Instrumented], ended: [String: ReceiverReading]) {
    state.withLock { state in
      (state.receivers.sorted { $0.key < $1.key }.compactMap { $0.value.receiver }, state.ended)
    }
  }

  /// What all receivers have done, by age, and those that have ended, by name.
  var readings: [(name: String, hasEnded: Bool, reading: ReceiverReading)] {
    let (receivers, ended) = receiversAndEnded
    return receivers.map { ($0.probe.label, false, $0.reading) }
      + ended.sorted { $0.key < $1.key }.map { ($0.key, true, $0.value) }
  }

  /// The same for each name, those that have ended together with the others.
  var readingsByName: [(name: String, hasEnded: Bool, reading: ReceiverReading)] {
    let (receivers, ended) = receiversAndEnded
    var sums = ended.mapValues { (hasEnded: true, reading: $0) }
    for receiver in receivers {
      let (name, reading) = (receiver.probe.name, receiver.reading)
      sums[name] = (false, sums[name].map { $0.reading + reading } ?? reading)
    }
    return sums.sorted { $0.key < $1.key }.map { ($0.key, $0.value.hasEnded, $0.value.reading) }
  }

  /// How often receivers, and nil for others, have dispatched events of which types, in parts.
  func dispatches(byName: Bool) -> [(source: String?, key: UInt, count: UInt64)] {
    let (counts, past) = state.withLock { (Array($0.dispatches.values), $0.past) }
    return counts.map { (byName ? $0.source?.name : $0.source?.source, $0.key, $0.value) }
      + past.map { (byName ? $0.key.name : $0.key.source, $0.key.key, $0.value) }
  }

  // MARK: Who looks on

  /// Begins to look on. Returns what `end` takes. Any thread, also inside a handler.
  func begin(_ wish: Wish, _ router: (Instruments?) -> Void) -> Int {
    change(router) { state in
      // Here, where of two threads that begin a trace at once one is the second.
      require(
        wish.trace == nil || state.wishes.values.allSatisfy { $0.trace == nil },
        "A central has one trace at a time, and this one is being traced: finish that one first.")
      state.count += 1
      state.wishes[state.count] = wish
      if let trace = wish.trace { state.traces.append(trace) }
      return state.count
    }
  }

  func end(_ number: Int, _ router: (Instruments?) -> Void) {
    let wish = change(router) { $0.wishes.removeValue(forKey: number) }
    withExtendedLifetime(wish) {}
  }

  private func change<Result>(_ router: (Instruments?) -> Void, _ body: (inout State) -> Result) -> Result {
    // The receivers are released outside of the lock, since that may run user code.
    let (result, receivers) = changing.withLock { _ in
      let (result, receivers) = state.withLock { state in
        let result = body(&state)
        let wishes = state.wishes.values
        sampling.store(wishes.map(\.sampling).filter { $0 != 0 }.min() ?? 0, ordering: .relaxed)
        limit.store(wishes.map(\.limit).min() ?? .max, ordering: .relaxed)
        let trace = wishes.lazy.compactMap(\.trace).first
        // Releasing, pairs with `trace`.
        traceAddress.store(
          trace.map { UInt(bitPattern: Unmanaged.passUnretained($0).toOpaque()) } ?? 0, ordering: .releasing)
        isOn.store(!wishes.isEmpty, ordering: .relaxed)
        return (result, state.receivers.values.compactMap(\.receiver))
      }
      router(isObserved ? self : nil)
      for receiver in receivers { receiver.followInstruments() }
      return (result, receivers)
    }
    return withExtendedLifetime(receivers) { result }
  }

  /// Tells those who want to know of a handler that took long. Its thread.
  func report(_ receiver: any Instrumented, _ key: UInt, took time: UInt64) {
    let told = state.withLock { $0.wishes.values.filter { time >= $0.limit }.compactMap(\.slow) }
    for slow in told { slow(receiver, key, time) }
  }
}

/// A receiver of an observed central.
protocol Instrumented: AnyObject, Sendable {
  var probe: ConsumerProbe { get }
  /// Begins or stops to count, as `Instruments.isObserved` says. It runs no user code.
  func followInstruments()
  /// What its mailbox and its handlers have done so far. It runs no user code.
  var reading: ReceiverReading { get }
  /// How many events wait.
  var waiting: Int { get }
}

/// What a receiver's mailbox and handlers have done.
struct ReceiverReading: Sendable {
  var mailbox = EventMailboxStatistics.none
  var counts = EventThreadStatistics.none
  var handled: [UInt: HandledReading] = [:]

  /// Counts what waits as cancelled: its receiver has ended.
  mutating func endWaiting() {
    counts.cancelled += UInt64(max(0, mailbox.waiting))
    mailbox.waiting = 0
  }

  static func + (lhs: Self, rhs: Self) -> Self {
    Self(
      mailbox: lhs.mailbox + rhs.mailbox, counts: lhs.counts + rhs.counts,
      handled: lhs.handled.merging(rhs.handled, uniquingKeysWith: +))
  }
}
