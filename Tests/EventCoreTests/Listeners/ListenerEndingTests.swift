// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

/// A handler's call that a test holds, and the order in which it and what waits for it end.
private struct HeldCall: Sendable {
  let entered = Gate(), leave = Gate()
  let log = Log<String>()

  func run() {
    entered.open()
    leave.pass()
    log.append("handled")
  }
}

/// Runs a closure when it is freed.
private final class AtEnd: Sendable {
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  deinit { body() }
}

extension EventThreadStatistics {
  fileprivate var total: UInt64 { delivered + skipped + cancelled }
}

@Suite("D10: listeners end, and what they did not get is counted")
struct ListenerEndingTests {
  @Test(
    "D10: what waits at the end of a listener is counted, wherever it runs", arguments: cores,
    ListenerPlace.allCases)
  func counted(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let listener = EventListener(on: central)
      let executeOn = place.executeOn
      let (log, entered, leave) = (Log<Int>(), Gate(), Gate())
      let handle = Ping.addListener(
        nil,
        { (event: Ping) in
          log.append(event.number)
          guard event.number == 0 else { return }
          entered.open()
          leave.pass()
        }, executeOn: executeOn, on: listener)
      for number in 0..<10 { #expect(Ping(number: number).queue(on: central) == 1) }
      entered.pass()
      #expect(handle.waitingEventCount == 9)
      listener.end()
      leave.open()
      #expect(waitUntil { listener.statistics == .init(delivered: 1, skipped: 0, cancelled: 9) })
      #expect(log.entries == [0])
      #expect(Ping().queue(on: central) == 0)
    }
  }

  enum Ending: CaseIterable { case end, drain, endOfCentral, cancelOfPool }

  @Test(
    "D10: listeners of several places end together: what still waits in one is cancelled, not skipped",
    arguments: cores, Ending.allCases)
  func endTogether(core: EventCentral.Core, ending: Ending) async {
    for _ in 0..<10 {
      let central = EventCentral(core: core)
      let pool = EventPool<EventThread>(capacity: 1, on: central)
      let listener =
        switch ending {
        case .end, .drain: EventListener(on: central)
        case .endOfCentral: central.listener
        case .cancelOfPool: pool.listener
        }
      let (entered, leave, queue) = (Gate(), Gate(), DispatchQueue(label: "not served"))
      Ping.addListener(
        nil,
        { ping in
          guard ping.number == 0 else { return }
          entered.open()
          leave.pass()
        }, executeOn: .listenerThread, on: listener)
      queue.suspend()
      // It is freed in the middle of the end, which stands still until the listener thread has done all that it can.
      Pong.addListener(
        nil,
        { [middle = AtEnd {
          leave.open()
          #expect(waitUntil { listener.statistics.total >= 10 })
        }] _ in _ = middle
        }, executeOn: .dispatchQueue(queue), on: listener)
      Pong().queue(on: central)
      (0..<10).map { Ping(number: $0) }.queue(on: central)
      await offThePool { entered.pass() }
      switch ending {
      case .end, .endOfCentral: await offThePool { listener.end() }
      case .drain: #expect(await !listener.drain(until: .now()))
      case .cancelOfPool: await offThePool { pool.cancel() }
      }
      #expect(await yieldUntil { listener.statistics.total == 11 })
      #expect(listener.statistics.skipped == 0)
      queue.resume()
    }
  }

  @Test("D6: end() inside a handler lets no other begin, not for the same event either", arguments: cores)
  func endInside(core: EventCentral.Core) async {
    for place in ListenerPlace.shared where place != .mainQueue {
      let central = EventCentral(core: core)
      let listener = EventListener(on: central)
      let (log, executeOn) = (Log<Int>(), place.executeOn)
      for number in 0..<3 {
        Ping.addListener(
          nil,
          { _ in
            if number == 1 { listener.end() }
            log.append(number)
          }, executeOn: executeOn, on: listener)
      }
      (0..<5).map { Ping(number: $0) }.queue(on: central)
      #expect(await yieldUntil { listener.statistics == .init(delivered: 1, skipped: 0, cancelled: 4) }, "\(place)")
      #expect(log.entries == [0, 1], "\(place)")
    }
  }

  @Test("D10: contexts that come and go leave their counts behind", arguments: cores)
  func placesThatWent(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      for round in 1...50 {
        let log = Log<Int>()
        let handle = Ping.addListener(nil, executeOn: .taskThread, on: central) {
          log.append($0.number)
        }
        for number in 0..<3 { #expect(Ping(number: number).queue(on: central) == 1) }
        #expect(log.entries(atLeast: 3) == [0, 1, 2])
        handle.removeAndWait()
        #expect(
          waitUntil {
            central.listener.statistics
              == .init(delivered: 3 * UInt64(round), skipped: 0, cancelled: 0)
          })
      }
    }
  }

  @Test("D6: after a scope's endAndWait none of its handlers runs or begins", arguments: cores)
  func scopeWaits(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      for count in [0, 1, 2, 7] {
        for _ in 0..<20 {
          let scope = EventListenerScope()
          let (ended, late) = (Guarded(false), Guarded(0))
          for _ in 0..<count {
            Ping.addListener(nil, executeOn: .listenerThread, on: central) { _ in
              if ended.withLock({ $0 }) { late.withLock { $0 += 1 } }
            }.stored(in: scope)
          }
          onThreads(2) { thread in
            if thread == 0 {
              for number in 0..<50 { Ping(number: number).queue(on: central) }
            } else {
              scope.endAndWait()
              ended.withLock { $0 = true }
            }
          }
          #expect(Ping().queue(on: central) == 0)
          #expect(waitUntil { central.listener.eventCount == 0 })
          #expect(late.withLock { $0 } == 0)
        }
      }
    }
  }

  @Test(
    "D6: a scope waits for the last call of a listener that had ended before", arguments: cores,
    [0, 1, 2])
  func scopeWaitsForEnded(core: EventCentral.Core, way: Int) async {
    await offThePool {
      let central = EventCentral(core: core)
      let scope = EventListenerScope()
      let held = HeldCall()
      let handle = Ping.addListener(nil, executeOn: .listenerThread, once: true, on: central) { _ in
        held.run()
      }.stored(in: scope)
      Ping().queue(on: central)
      held.entered.pass()
      #expect(!handle.isActive)
      switch way {
      case 0:
        // From the seventeenth on the scope looks for listeners that have ended.
        for _ in 0..<40 {
          Pong.addListener(nil, executeOn: .listenerThread, on: central) { _ in }.stored(in: scope)
        }
      case 1: scope.removeAll()
      default: scope.end()
      }
      let waits = Gate()
      runThread {
        waits.open()
        scope.endAndWait()
        held.log.append("ended")
      }
      waits.pass()
      held.leave.open()
      #expect(held.log.entries(atLeast: 2) == ["handled", "ended"])
    }
  }

  @Test("D6: no call begins after removeAndWait, even if others remove the listener, too", arguments: cores)
  func removedByTwo(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      for _ in 0..<300 {
        let calls = Guarded(0)
        let handle = Ping.addListener(nil, executeOn: .listenerThread, on: central) { _ in
          calls.withLock { $0 += 1 }
        }
        onThreads(3) { thread in
          switch thread {
          case 0:
            for _ in 0..<50 { Ping().queue(on: central) }
          case 1:
            handle.remove()
          default:
            handle.removeAndWait()
            let before = calls.withLock { $0 }
            for _ in 0..<20 { Ping().queue(on: central) }
            #expect(calls.withLock { $0 } == before)
          }
        }
      }
    }
  }

  @Test("D6: a scope waits for a handler that runs while it ends", arguments: cores)
  func scopeWaitsForRunning(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let scope = EventListenerScope()
      let held = HeldCall()
      Ping.addListener(nil, executeOn: .listenerThread, on: central) { _ in held.run() }
        .stored(in: scope)
      Ping().queue(on: central)
      held.entered.pass()
      runThread {
        scope.endAndWait()
        held.log.append("ended")
      }
      #expect(waitUntil { Ping().queue(on: central) == 0 })
      held.leave.open()
      #expect(held.log.entries(atLeast: 2) == ["handled", "ended"])
    }
  }
}

extension ListenerDrainTests {
  @Test("D10: a drain is not true if an end, or another drain, has freed events meanwhile", arguments: cores)
  func endedMeanwhile(core: EventCentral.Core) async {
    for ends in [true, false] {
      for place in Self.places {
        let world = EventCentral(core: core)
        let (listener, began, gate) = (EventListener(on: world), Gate(), Gate())
        Hit.addListener(
          nil,
          { hit in
            guard hit.number == 0 else { return }
            began.open()
            gate.pass()
          }, executeOn: place, on: listener)
        (0..<10).map(Hit.init).queue(on: world)
        await offThePool { began.pass() }
        async let isDrained = listener.drain()
        #expect(await yieldUntil { Hit(number: -2).queue(on: world) == 0 })
        if ends { listener.end() } else { #expect(await !listener.drain(until: .now())) }
        gate.open()
        #expect(await !isDrained)
        #expect(await !listener.drain())
        // And those that have looked whether the drain has begun.
        #expect(await yieldUntil { listener.statistics.cancelled >= 9 })
      }
    }
    // Nothing waited.
    let (listener, log) = (EventListener(on: EventCentral(core: core)), Log<Int>())
    Hit.addListener(nil, { log.append($0.number) }, executeOn: .listenerThread, on: listener)
    listener.queueEvent(Hit(number: 1))
    await offThePool { #expect(log.entries(atLeast: 1) == [1]) }
    listener.end()
    #expect(await listener.drain())
  }

  @Test("D10: an ending listener accepts nothing that is dispatched while its places end one by one", arguments: cores)
  func dispatchedAtEnd(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    let (listener, accepted, isEnding) = (EventListener(on: world), Log<Bool>(), Guarded(false))
    // The places end in any order: each tells its pump, whose closure dispatches to the others.
    let pumps = (0..<8).map { _ in
      EventPump(
        on: world,
        wakeUp: { [weak listener] in
          if isEnding.withLock({ $0 }) { accepted.append(listener?.queueEvent(Hit(number: 1)) ?? false) }
        })
    }
    for pump in pumps { Hit.addListener(nil, { _ in }, executeOn: .pump(pump.place), on: listener) }
    isEnding.withLock { $0 = true }
    listener.end()
    #expect(accepted.entries.count >= 8)
    #expect(!accepted.entries.contains(true))
    #expect(await listener.drain())
  }
}
