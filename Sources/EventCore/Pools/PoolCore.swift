// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The part of an `EventPool` that does not depend on the type of its threads: it makes, retires and ends
/// them.
///
/// `state` is guarded by its mutex; everything else is constant. Threads are made, retired and released
/// without the mutex, since this runs user code or takes other locks. One call of `adjust` at a time does
/// it: a call that finds `isAdjusting` set returns, and the other call sees the new `capacity`. Lock
/// order: `state`, then that of `listeners`, or the mutex of a mailbox, to read its counters.
///
/// One file, though long: whatever changes `state` is in here.
final class PoolCore: PoolTicked, @unchecked Sendable {
  struct Slot {
    let thread: EventThread
    let member: PoolMember
    /// Whether it took part when the pool was drained. Unless it is given up, or drained by itself, it leaves no event
    /// in a shared mailbox.
    var staysToTheEnd = false
  }

  private struct State {
    var slots: [Slot] = []
    var retiring: [Slot] = []
    var capacity: Int
    var isAdjusting = false
    /// Whether threads that have ended are to be taken out before the others are counted: one whose `join` has returned
    /// may not have left the pool yet.
    var mustSweep = false
    /// The number of the thread that is making one; nil if none is.
    var maker: UInt?
    /// Those of the threads that free what is left at the end of the pool.
    var enders: [UInt] = []
    /// How many threads had ended when they had been made, at the last adjustment. They are not missed before the next
    /// one, since others might end, too.
    var stillborn = 0
    var isEnded = false
    var isCancelled = false
    /// Whether a worker stayed until the shared mailbox was empty and closed.
    var isEmptied = false
    var past = PoolPast()
    /// Whether a thread was cancelled while events waited for it.
    var hasLost = false

    /// Whether the pool has ended, with all threads that it has and will ever have.
    var isOver: Bool { isEnded && slots.isEmpty && retiring.isEmpty && maker == nil }
    /// Whether an adjustment would make one.
    var missesThread: Bool { !isEnded && slots.count + stillborn < capacity }
  }

  let central: EventCentral
  let direct: any RouterCore
  let shared: SharedMailbox?
  /// Of the mailbox of each thread.
  private let mailbox: EventMailboxCapacity
  let routes: PoolRoutes
  let listeners = PoolListeners()
  private let name: String
  let scaler: any EventPoolScaling
  private let ticker: PoolTicker?
  private let accepts: (EventThread.Type) -> Bool
  private let make: @Sendable (Int) -> EventThread
  private let state: Guarded<State>
  /// Opened when the pool has ended with all its threads.
  let ended = Latch()

  init(
    capacity: Int, balancer: any EventPoolBalancing, scaler: any EventPoolScaling,
    mailbox: EventMailboxCapacity, central: EventCentral, name: String, receiverName: String,
    accepts: @escaping (EventThread.Type) -> Bool, make: @escaping @Sendable (Int) -> EventThread
  ) {
    self.central = central
    self.name = name
    self.scaler = scaler
    self.accepts = accepts
    self.make = make
    direct = central.basis.makeRouter()
    let routers = RouterGroup([central.router, direct])
    let balancer = central.serial == nil ? balancer : balancer.needs?.forDeterministicPool() ?? balancer
    routes = PoolRoutes(central.basis, routes: routers, balancer: balancer, name: name)
    let sharesOne = balancer.needs?.sharesOneMailbox == true
    mailbox.check(for: "EventPool")
    self.mailbox = sharesOne ? .unbounded : mailbox
    let bound = central.serial == nil ? mailbox : mailbox.withoutWaiting
    shared =
      sharesOne
      ? SharedMailbox(central.basis, router: routers, capacity: bound, name: name, receiverName: receiverName) : nil
    ticker = scaler.interval.map { PoolTicker(every: $0, by: central.basis.clock) }
    state = Guarded(State(capacity: capacity))
    check(capacity, by: "its maker")
    if let maximum = scaler.maximumCapacity {
      // Checked now, not under the load that makes the scaler ask for it.
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

  /// Half of the workers that a shared mailbox can have: as many again may be retiring.
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
    // The owner may have set another capacity meanwhile, which takes precedence.
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
    case sweep
    case add(index: Int)
    case retire(Slot)
  }

  /// Makes and retires threads until the pool has `capacity` threads.
  private func adjust() {
    let isFirst = state.withLock { state in
      state.mustSweep = true
      defer { state.isAdjusting = true }
      return !state.isAdjusting
    }
    guard isFirst else { return }
    // The indices of threads that ended while they were made. They are not replaced at once, since the
    // next ones might end, too.
    var ended: Set<Int> = []
    while let step = nextStep(but: ended) {
      switch step {
      case .sweep: sweep()
      case .add(let index):
        if !admit(makeSlot(index)) { ended.insert(index) }
      case .retire(let slot):
        _ = slot.thread.ownListener.closeWhenEmpty()
        if shared == nil {
          slot.member.retire()
          slot.thread.consumer.mailbox.interrupt()
        } else {
          // The other workers handle the events in the shared mailbox.
          slot.thread.consumer.close(whenEmpty: true)
        }
      }
    }
    // `didEnd` found no slot for threads that ended before they were admitted.
    sweep()
    // No thread of an idle pool wakes the ticker, although the scaler may want fewer threads.
    if let ticker, slots.active.count > scaler.restingCapacity {
      ticker.wake()
    }
  }

  /// Takes out the threads that have ended, and those that take no events.
  private func sweep() {
    let present = slots
    for slot in present.active + present.retiring where slot.thread.consumer.ended.isOpen {
      didEnd(slot.member)
    }
    listeners.letGo()
    // One that somebody has cancelled takes no events, and may take long to end.
    for slot in present.active where !slot.thread.consumer.isOpen {
      state.withLock { state in
        guard let index = state.slots.firstIndex(where: { $0.member === slot.member }) else { return }
        state.retiring.append(state.slots.remove(at: index))
      }
    }
  }

  private func nextStep(but ended: Set<Int>) -> Step? {
    state.withLock { state in
      if state.mustSweep {
        state.mustSweep = false
        return .sweep
      }
      if !state.isEnded, state.slots.count + ended.count < state.capacity, hasRoom(state) {
        // The lowest index that no thread has, including those that are being retired.
        let taken = ended.union((state.slots + state.retiring).map(\.member.index))
        state.maker = currentThreadNumber()
        return .add(index: (0...).first { !taken.contains($0) }!)
      }
      if !state.isEnded, state.slots.count > state.capacity {
        // The last of the threads with the least to do. In a shared pool that is an idle one, since no
        // events wait for one thread alone.
        let loads = state.slots.map {
          shared == nil ? $0.member.load.pending : $0.member.load.runningSince == nil ? 0 : 1
        }
        let least = loads.min()!
        let slot = state.slots.remove(at: loads.lastIndex(of: least)!)
        state.retiring.append(slot)
        return .retire(slot)
      }
      state.isAdjusting = false
      state.stillborn = ended.count
      return nil
    }
  }

  /// Whether the shared mailbox can have another worker. If not, `didEnd` of a retired one adjusts again.
  private func hasRoom(_ state: State) -> Bool {
    shared == nil || state.slots.count + state.retiring.count < SharedMailbox.maximumWorkers
  }

  private func makeSlot(_ index: Int) -> Slot {
    let direct = central.basis.makeRouter()
    let member = PoolMember(
      index: index, central.basis, direct: direct, pool: routes, ticker: ticker)
    let membership = PoolMembership(
      central: central, direct: direct, member: member, shared: shared, mailbox: mailbox, name: "\(name)-\(index)",
      didEnd: { [weak self] in self?.didEnd(member) })
    return Slot(
      thread: PoolConstruction.make(membership, accepts: accepts) { make(index) }, member: member)
  }

  /// Makes a new thread part of the pool, or ends it as the pool has been ended. False if it has ended by itself.
  private func admit(_ slot: Slot) -> Bool {
    let hasEnded = slot.thread.consumer.ended.isOpen
    let (isWelcome, isCancelled) = state.withLock { state in
      state.maker = nil
      // The other ones count until they have ended: `didEnd` or a sweep takes them out.
      guard !state.isEnded, !hasEnded else {
        state.retiring.append(slot)
        return (false, state.isCancelled)
      }
      state.slots.append(slot)
      state.slots.sort { $0.member.index < $1.member.index }
      return (true, false)
    }
    if isWelcome {
      slot.member.join()
      if shared != nil {
        slot.thread.consumer.admit()
      }
    } else if isCancelled {
      slot.thread.cancel()
    } else {
      slot.thread.beginDrain()
    }
    return !hasEnded
  }

  /// Removes a thread that has ended. Called by that thread and, if it ended early, by `adjust`.
  private func didEnd(_ member: PoolMember) {
    // The second call finds no slot. The slot is released outside of the mutex, since the `deinit` of a
    // thread object is user code.
    let (slot, isLast, hasMadeRoom, isMissed) = state.withLock { state -> (Slot?, Bool, Bool, Bool) in
      guard let slot = (state.slots + state.retiring).first(where: { $0.member === member }) else {
        return (nil, false, false, false)
      }
      let hasMadeRoom = !hasRoom(state)
      state.slots.removeAll { $0.member === member }
      state.retiring.removeAll { $0.member === member }
      state.past.add(member, slot.thread.consumer, isCounted: shared == nil)
      state.hasLost = state.hasLost || !slot.thread.hasHandledAll
      state.isEmptied = state.isEmptied || slot.staysToTheEnd && !slot.thread.leavesShared && !state.isCancelled
      listeners.add(slot.thread)
      return (slot, state.isOver, hasMadeRoom, state.missesThread)
    }
    defer { withExtendedLifetime(slot) {} }
    if isLast { end() }
    listeners.letGo()
    if hasMadeRoom {
      adjust()
    }
    // No thread may be left to wake it.
    if isMissed { ticker?.wake() }
  }

  /// Lets those go on who wait for the end.
  private func end() {
    let thread = currentThreadNumber()
    state.withLock { $0.enders.append(thread) }
    // Events may be left if all threads were cancelled, or retired, before the pool ended. Their `deinit` is user code.
    shared?.dropAll()
    // The last of them: another thread may still free what it took.
    let isLast = state.withLock { state in
      state.enders.remove(at: state.enders.firstIndex(of: thread)!)
      return state.enders.isEmpty
    }
    if isLast { ended.open() }
  }

  // MARK: Ending

  /// Takes the pool off its central and ends its threads.
  func close(whenEmpty: Bool) {
    let slots = state.withLock { state in
      if whenEmpty, !state.isEnded {
        for index in state.slots.indices {
          state.slots[index].staysToTheEnd = state.slots[index].thread.consumer.isOpen
        }
      }
      state.isEnded = true
      state.isCancelled = state.isCancelled || !whenEmpty
      return state.slots + state.retiring
    }
    routes.close()
    shared?.close(whenEmpty: whenEmpty)
    // Also if the last thread has just ended, since something may have come until the mailbox was closed.
    if state.withLock({ $0.isOver }) { end() }
    if whenEmpty {
      for slot in slots { shared == nil ? slot.thread.consumer.close(whenEmpty: true) : slot.thread.consumer.refuse() }
    } else {
      for slot in slots { slot.thread.cancel() }
      listeners.end()
      listeners.letGo()
    }
  }

  /// Ends the pool with the last reference to the `EventPool` (D9).
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
    listeners.releaseAll()
  }

  // MARK: Looking

  /// Also those that have ended, as long as listeners on them have not.
  var allThreads: [EventThread] {
    state.withLock { ($0.slots + $0.retiring).map(\.thread) + listeners.threads }
  }

  /// The threads that are not being retired, by index, and those that are.
  var slots: (active: [Slot], retiring: [Slot]) { state.withLock { ($0.slots, $0.retiring) } }

  /// Whether the end of the pool waits for the calling thread, which is making a thread of it, or frees what is left.
  var waitsForCaller: Bool {
    state.withLock { [$0.maker ?? 0] + $0.enders }.contains(currentThreadNumber())
  }

  /// Whether events were freed that waited for a thread, for listeners on it, or for workers none of which stayed. What
  /// is freed behind a worker that stayed was being dispatched at the end: see `EventThread.hasHandledAll`.
  var hasLost: Bool {
    let (hasLost, isEmptied) = state.withLock { ($0.hasLost, $0.isEmptied) }
    return hasLost || listeners.hasLost || !isEmptied && shared?.core.counts().dropped ?? 0 != 0
  }

  /// The same, with the statistics of threads that have ended, as of one moment.
  var slotsAndPast: (active: [Slot], retiring: [Slot], past: EventThreadStatistics) {
    state.withLock { ($0.slots, $0.retiring, $0.past.statistics) }
  }

  /// As `WorkElsewhere`, of all threads that there ever were. Not under the lock, since it may release events.
  var elsewhere: WorkElsewhere {
    let (slots, jobs, ended) = state.withLock { state in
      (state.slots + state.retiring, state.past.jobs, listeners.threadsAndPast)
    }
    return slots.reduce(WorkElsewhere(statistics: ended.past, jobs: jobs)) { $0 + $1.thread.elsewhere }
      + ended.threads.reduce(WorkElsewhere()) { $0 + WorkElsewhere($1.ownListener) }
  }

  /// Of the mailboxes of single threads, those that have ended included, as of one moment.
  var mailboxStatistics: EventMailboxStatistics {
    let (slots, past) = state.withLock { ($0.slots + $0.retiring, $0.past.mailboxes) }
    return slots.reduce(past) { $0 + $1.thread.mailboxStatistics }
  }

  /// For `reading`, as of one moment.
  typealias Numbers = (capacity: Int, active: [Slot], retiring: [Slot], handled: UInt64, missesThread: Bool)
  var numbers: Numbers {
    state.withLock { ($0.capacity, $0.slots, $0.retiring, $0.past.handled, $0.missesThread) }
  }
}
