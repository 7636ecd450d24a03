// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What an `EventPool` is, apart from the type of its threads and from its user's reference: the
/// threads, how many there ought to be, and the end of it all. Over 300 lines: making, retiring and
/// ending threads change one state under one lock.
///
/// Who touches what: `state` under its mutex; everything else is constant. Threads are made,
/// retired and let go outside of it, since all of these run user code or take the locks of others.
/// One at a time does so: whoever finds `isAdjusting` set leaves its wish in `capacity`. Lock
/// order: `state`, then a mailbox's mutex, to read its counters.
final class PoolCore: PoolTicked, @unchecked Sendable {
  struct Slot {
    let thread: EventThread
    let member: PoolMember
  }

  private struct State {
    var slots: [Slot] = []
    var retiring: [Slot] = []
    var capacity: Int
    var isAdjusting = false
    var isEnded = false
    var past = PoolPast()
    /// A thread that has ended was given up while events waited for it.
    var hasLost = false
  }

  let central: EventCentral
  let direct: any RouterCore
  let shared: SharedMailbox?
  let routes: PoolRoutes
  private let name: String
  private let scaler: any EventPoolScaling
  private let ticker: PoolTicker?
  private let accepts: (EventThread.Type) -> Bool
  private let make: @Sendable (Int) -> EventThread
  private let state: Guarded<State>

  init(
    capacity: Int, balancer: any EventPoolBalancing, scaler: any EventPoolScaling,
    central: EventCentral, name: String, accepts: @escaping (EventThread.Type) -> Bool,
    make: @escaping @Sendable (Int) -> EventThread
  ) {
    self.central = central
    self.name = name
    self.scaler = scaler
    self.accepts = accepts
    self.make = make
    direct = central.core.parts.makeRouter()
    let routers = RouterGroup([central.router, direct])
    routes = PoolRoutes(core: central.core, routes: routers, balancer: balancer)
    shared =
      balancer.needs?.sharesOneMailbox == true
      ? SharedMailbox(core: central.core, router: routers) : nil
    ticker = scaler.interval.map { PoolTicker(every: $0) }
    state = Guarded(State(capacity: capacity))
    check(capacity, by: "its maker")
    if let maximum = scaler.maximumCapacity {
      // Now, and not under the load that makes it ask.
      check(maximum, by: "its \(type(of: scaler)), at its maximum,")
    }
    ticker?.watch(self)
    adjust()
  }

  private func check(_ capacity: Int, by whom: @autoclosure () -> String) {
    require(
      capacity >= 1,
      "An EventPool has at least one thread, and \(whom()) asked for \(capacity): ask for 1 or more."
    )
    require(
      shared == nil || capacity <= Self.mostShared,
      """
      A pool with an EventPoolSharedBalancer has at most \(Self.mostShared) threads, and \(whom()) \
      asked for \(capacity). Ask for fewer, or balance the pool.
      """)
  }

  /// Half of what a shared mailbox can have, so that as many may be retiring.
  private static let mostShared = 128

  // MARK: How many threads

  var capacity: Int {
    get { state.withLock { $0.capacity } }
    set {
      check(newValue, by: "whoever set its capacity")
      state.withLock { $0.capacity = newValue }
      adjust()
    }
  }

  /// Asks the scaler now.
  func rescale() {
    let reading = reading
    let wanted = scaler.capacity(for: reading)
    check(wanted, by: "\(type(of: scaler))")
    // Unless the owner has asked for something else meanwhile.
    let isNew = state.withLock { state in
      guard state.capacity == reading.capacity, !state.isEnded else { return false }
      state.capacity = wanted
      return true
    }
    if isNew {
      adjust()
    }
  }

  private enum Step {
    case add(index: Int)
    case retire(Slot)
  }

  /// Makes and retires threads until there are as many as asked for.
  private func adjust() {
    let isFirst = state.withLock { state in
      defer { state.isAdjusting = true }
      return !state.isAdjusting
    }
    guard isFirst else { return }
    // The indices of threads that ended while they were made. Not replaced at once: the next may do the same.
    var ended: Set<Int> = []
    while let step = nextStep(but: ended) {
      switch step {
      case .add(let index):
        let slot = makeSlot(index)
        if slot.thread.consumer.ended.isOpen { ended.insert(index) } else { admit(slot) }
      case .retire(let slot):
        if shared == nil {
          slot.member.retire()
          slot.thread.consumer.mailbox.interrupt()
        } else {
          // What waits for all is left to the others.
          slot.thread.consumer.close(whenEmpty: true)
        }
      }
    }
    // Those that ended before they were admitted found no slot to leave.
    let present = slots
    for slot in present.active + present.retiring where slot.thread.consumer.ended.isOpen {
      didEnd(slot.member)
    }
    // An idle pool that is too large for its scaler has no thread that would have it asked.
    if let ticker, slots.active.count > scaler.restingCapacity {
      ticker.wake()
    }
  }

  private func nextStep(but ended: Set<Int>) -> Step? {
    state.withLock { state in
      if !state.isEnded, state.slots.count + ended.count < state.capacity, hasRoom(state) {
        // The lowest index that no thread has, also none that is about to end.
        let taken = ended.union((state.slots + state.retiring).map(\.member.index))
        return .add(index: (0...).first { !taken.contains($0) }!)
      }
      if !state.isEnded, state.slots.count > state.capacity {
        // The one with the least to do; of several the last. In a shared pool nothing waits for one
        // alone.
        let loads = state.slots.map {
          shared == nil ? $0.member.load.pending : $0.member.load.runningSince == nil ? 0 : 1
        }
        let least = loads.min()!
        let slot = state.slots.remove(at: loads.lastIndex(of: least)!)
        state.retiring.append(slot)
        return .retire(slot)
      }
      state.isAdjusting = false
      return nil
    }
  }

  /// Whether one more thread may be there. If not, one of those that are about to end makes room.
  private func hasRoom(_ state: State) -> Bool {
    shared == nil || state.slots.count + state.retiring.count < SharedMailbox.maximumWorkers
  }

  private func makeSlot(_ index: Int) -> Slot {
    let direct = central.core.parts.makeRouter()
    let member = PoolMember(
      index: index, core: central.core, direct: direct, pool: routes, ticker: ticker)
    let membership = PoolMembership(
      central: central, direct: direct, member: member, shared: shared, name: "\(name)-\(index)",
      didEnd: { [weak self] in self?.didEnd(member) })
    return Slot(
      thread: PoolConstruction.make(membership, accepts: accepts) { make(index) }, member: member)
  }

  private func admit(_ slot: Slot) {
    let isWelcome = state.withLock { state in
      guard !state.isEnded else { return false }
      state.slots.append(slot)
      state.slots.sort { $0.member.index < $1.member.index }
      return true
    }
    if isWelcome {
      slot.member.join()
      if shared != nil {
        slot.thread.consumer.admit()
      }
    } else {
      slot.thread.cancel()
    }
  }

  /// A thread of the pool has ended, on that thread.
  private func didEnd(_ member: PoolMember) {
    // Whoever comes second finds it gone: the thread, and whoever made it. The slot itself goes outside
    // of the mutex: the end of a thread object is user code.
    let (slot, isLast, hasMadeRoom) = state.withLock { state -> (Slot?, Bool, Bool) in
      guard let slot = (state.slots + state.retiring).first(where: { $0.member === member }) else {
        return (nil, false, false)
      }
      let hasMadeRoom = !hasRoom(state)
      state.slots.removeAll { $0.member === member }
      state.retiring.removeAll { $0.member === member }
      state.past.add(member, slot.thread.consumer, isCounted: shared == nil)
      state.hasLost = state.hasLost || !slot.thread.hasHandledAll
      let isLast = state.isEnded && state.slots.isEmpty && state.retiring.isEmpty
      return (slot, isLast, hasMadeRoom)
    }
    defer { withExtendedLifetime(slot) {} }
    if hasMadeRoom {
      adjust()
    }
    if isLast {
      // It may have ended before the pool did, and so without looking.
      shared?.core.dropAll()
    }
  }

  // MARK: Ending

  /// Takes the pool off its central and ends its threads. Returns those that are still there.
  @discardableResult
  func close(whenEmpty: Bool) -> [Slot] {
    let slots = state.withLock { state in
      state.isEnded = true
      return state.slots + state.retiring
    }
    routes.close()
    if let shared {
      shared.close(whenEmpty: whenEmpty)
      if slots.isEmpty {
        // Threads that were cancelled by themselves have left to others what waits, and there are
        // none.
        shared.core.dropAll()
      }
    }
    for slot in slots where shared == nil || !whenEmpty {
      if whenEmpty {
        slot.thread.consumer.close(whenEmpty: true)
      } else {
        slot.thread.giveUp()
      }
    }
    return slots
  }

  /// The pool's owner has let it go: its threads go with it (D9).
  func release() {
    close(whenEmpty: false)
    let slots = state.withLock { state in
      defer {
        state.slots.removeAll()
        state.retiring.removeAll()
      }
      return state.slots + state.retiring
    }
    withExtendedLifetime(slots) {}
  }

  // MARK: Looking

  /// The threads that take events, by index, and those that are about to end.
  var slots: (active: [Slot], retiring: [Slot]) { state.withLock { ($0.slots, $0.retiring) } }

  /// Whether a thread that has ended was given up while events waited for it.
  var hasLost: Bool { state.withLock { $0.hasLost } }

  /// With what threads that have ended have done, as of the same moment.
  var slotsAndPast: (active: [Slot], retiring: [Slot], past: EventThreadStatistics) {
    state.withLock { ($0.slots, $0.retiring, $0.past.statistics) }
  }

  var reading: EventPoolReading {
    let (capacity, slots, retiring, past) = state.withLock {
      ($0.capacity, $0.slots, $0.retiring, $0.past.handled)
    }
    let busy = slots.count { $0.member.load.runningSince != nil }
    let waiting =
      if let shared {
        shared.core.depths().reduce(0, +)
      } else {
        slots.reduce(0) { $0 + $1.waiting }
      }
    return EventPoolReading(
      capacity: capacity, threads: slots.count, busyThreads: busy, waiting: waiting,
      handled: past + (slots + retiring).reduce(0) { $0 + $1.member.load.done })
  }

  /// Whether the scaler need not be asked until a thread begins with an event.
  var isAtRest: Bool {
    let reading = reading
    return reading.waiting == 0 && reading.busyThreads == 0
      && reading.threads <= scaler.restingCapacity
  }
}

extension PoolCore.Slot {
  /// How many events wait for the thread alone. O(1) in a balanced pool.
  var waiting: Int {
    let load = member.load
    return max(0, load.pending - (load.runningSince == nil ? 0 : 1))
  }
}
