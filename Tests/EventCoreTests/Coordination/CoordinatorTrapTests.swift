// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with coordinators trap")
struct CoordinatorTrapTests {
  @Test("a chain of responders that leads back to itself traps before anybody is asked")
  func circleOfResponders() async {
    for (length, tail) in [(1, 0), (2, 0), (3, 5), (1_000, 7), (7, 1_000)] {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [length = length as Int, tail = tail as Int] in
        let journal = Journal()
        let sensors = (0..<length + tail).map { Sensor("sensor \($0)", journal) }
        for (sensor, above) in zip(sensors, sensors.dropFirst()) { sensor.above = above }
        sensors.last!.above = sensors[tail]
        for sensor in sensors {
          sensor.answer = { _ in preconditionFailure("An interceptor was asked.") }
        }
        sensors[0].emitEvent(Teams.didSelect(1))
      }
      expectMessage(
        result,
        "leads from one of type Sensor back to itself, in \(length) step\(length == 1 ? ":" : "s:")"
      )
    }
  }

  @Test("a coordinator as its own child")
  func ownChild() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let coordinator = Coordinator()
      coordinator.addChild(coordinator)
    }
    expectMessage(result, "that is the same: take one of them out")
  }

  @Test("a coordinator as a child of one below it")
  func circleOfCoordinators() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let coordinators = (0..<4).map { _ in Coordinator() }
      for (parent, child) in zip(coordinators, coordinators.dropFirst()) { parent.addChild(child) }
      coordinators[3].addChild(coordinators[1])
    }
    expectMessage(result, "that is below it: take one of them out")
  }

  @Test("starting twice")
  func startingTwice() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let coordinator = Coordinator()
      coordinator.start()
      coordinator.start()
    }
    expectMessage(result, "start() was called on one of type Coordinator that is started")
  }

  @Test("starting inside stop()")
  func startingWhileStopping() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let journal = Journal()
      let (top, child) = (Desk("top", journal), Desk("child", journal))
      top.startChild(child)
      child.beforeStop = { top.start() }
      top.stop()
    }
    expectMessage(result, "start() was called on one of type Desk that is stopping")
  }

  @Test("a child for a coordinator that is being stopped")
  func childWhileStopping() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let journal = Journal()
      let (top, child) = (Desk("top", journal), Desk("child", journal))
      top.startChild(child)
      child.beforeStop = { top.addChild(Coordinator()) }
      top.stop()
    }
    expectMessage(result, "is being stopped; one of type Desk was given one of type Coordinator")
  }

  @Test("a child below a coordinator that is being stopped, in answer to the end of another one")
  func childBelowStopping() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let journal = Journal()
      let (top, middle) = (Desk("top", journal), Desk("middle", journal))
      top.startChild(middle)
      // Each child reports its end, and has a successor. A hundred are enough to see that there is no end.
      func startNext() {
        let child = Desk("child", journal)
        child.beforeStop = { [unowned child] in child.emitEvent(Teams.didSelect(1)) }
        middle.startChild(child)
      }
      middle.answer = { _ in
        if journal.entries.count < 300 { startNext() }
        return .handled
      }
      startNext()
      top.stop()
    }
    expectMessage(result, "is being stopped; one of type Desk was given one of type Desk")
  }

  @Test("a child started below a coordinator that was stopped")
  func childOfStopped() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let journal = Journal()
      let (top, child) = (Desk("top", journal), Desk("child", journal))
      top.start()
      top.stop()
      // To put it there is allowed: the top may be started again.
      top.addChild(child)
      top.startChild(child)
    }
    expectMessage(
      result, "one of type Desk was to be started below one of type Desk that is stopped")
  }

  @Test("a method of another class")
  func methodOfAnotherClass() async {
    final class Other: Coordinator {
      func onTeams(_ event: Teams) -> EventInterception { .pass }
    }
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Coordinator().intercept(Other.onTeams)
    }
    expectMessage(result, "a method of Other was registered with one of type Coordinator")
  }

  /// A screen of the MainActor without a coordinator.
  @MainActor
  private final class Screen: UICoordinated {
    weak var parentCoordinator: UICoordinator?
    nonisolated var nextResponder: (any EventResponder)? { nil }
  }

  /// A view on no actor, below something of the MainActor.
  private final class Below: EventResponder {
    let above: any EventResponder
    init(_ above: any EventResponder) { self.above = above }
    var nextResponder: (any EventResponder)? { above }
  }

  /// Takes a responder of the MainActor to a thread on which it must not be used.
  private struct Sent: @unchecked Sendable {
    // Wrong on purpose: this is the mistake that the test makes. One thread alone uses it.
    let responder: any EventResponder
  }

  @Test("an event that comes to something of the MainActor on another thread")
  func elsewhere() async {
    for isScreen in [false, true] {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [isScreen = isScreen as Bool] in
        let above = await MainActor.run {
          Sent(responder: isScreen ? Screen() as any EventResponder : UICoordinator())
        }
        runThread { Below(above.responder).emitEvent(Teams.didSelect(1)) }
        await offThePool { Gate().pass() }
      }
      expectMessage(
        result, "is used on the MainActor, and one was reached by an event elsewhere: do that on the MainActor")
    }
  }

  @Test("something of the MainActor that is made, started or stopped on another thread")
  func lifeElsewhere() async {
    for deed in ["made", "started", "stopped"] {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [deed = deed as String] in
        let sent = await MainActor.run { Sent(responder: UICoordinator()) }
        // As a function in Swift 5 mode may, whose callers the compiler does not check.
        let make: @MainActor @Sendable () -> Void = { _ = UICoordinator() }
        let makeUnchecked = unsafeBitCast(make, to: (@Sendable () -> Void).self)
        runThread {
          let (parent, child) = (Coordinator(), sent.responder as! UICoordinator)
          switch deed {
          case "made": makeUnchecked()
          case "started": parent.startChild(child)
          default:
            parent.addChild(child)
            parent.stop()
          }
        }
        await offThePool { Gate().pass() }
      }
      expectMessage(result, "A UICoordinator is used on the MainActor, and one was \(deed) elsewhere: do that on the")
    }
  }
}
