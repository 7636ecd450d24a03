// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the page Scheduling, with the public interface alone.

import Dispatch
import EventCore
import Foundation
import Testing

struct ReminderEvent: Eventable {
  var text: String
}

struct HeartbeatEvent: Eventable {}

struct FrameEvent: Eventable {}

@Suite("The examples of Scheduling compile and run")
struct SchedulingExamples {
  @Test("schedules at, after and every, and a cancel")
  func overview() {
    let reminder = ReminderEvent(text: "tea")

    reminder.scheduleQueue(at: .now() + .seconds(4), priority: .highest)
    reminder.scheduleStack(after: .milliseconds(250))

    let heartbeat = HeartbeatEvent().scheduleQueue(every: .seconds(1))
    heartbeat.cancel()

    let renderThread = EventThread(on: EventCentral())
    FrameEvent().scheduleQueue(after: .milliseconds(16), on: renderThread)

    let frames = FrameEvent().scheduleQueue(
      every: .microseconds(16_667), limit: 600, policy: .skip, priority: .high)
    print(frames.dispatches, frames.skipped)
    #expect(frames.cancel())
    #expect(heartbeat.state == .cancelled)
  }

  @Test("a clock that is moved")
  func manualClock() {
    let clock = ManualClock()
    let world = EventCentral(clock: clock)
    let handle = ReminderEvent(text: "tea").scheduleQueue(at: world.now + .seconds(180), on: world)
    clock.advance(by: .seconds(180))   // the reminder is dispatched before this returns
    #expect(handle.state == .dispatched)
  }

  @Test("timers of pumps")
  func pumps() {
    var frames = 0
    func draw(_ frame: FrameEvent) { frames += 1 }
    let world = EventCentral(timers: .pumps)
    let pump = EventPump(on: world)
    pump.addEventCallback { (frame: FrameEvent) in draw(frame) }
    FrameEvent().scheduleQueue(every: .microseconds(16_667), on: world)
    while frames < 3 {
      pump.wait()
      pump.run()
    }
    #expect(pump.timeUntilTimer != nil)
    pump.cancel()
    pump.run()
  }

  @Test("times as programs for EventDrivenSwift write them")
  func foundationTimes() {
    let temperatureEvent = TemperatureEvent(temperatureInCelsius: 23.25)
    temperatureEvent.scheduleQueue(
      at: DispatchTime.now() + TimeInterval().advanced(by: 4), priority: .highest)
    temperatureEvent.scheduleStack(
      at: DispatchTime.now() + TimeInterval().advanced(by: 4), priority: .highest)
    let central = EventCentral()
    let handle = temperatureEvent.scheduleQueue(at: .now() + .seconds(4), on: central)
    #expect(handle.cancel())
    #expect(central.scheduleStatistics.cancelled == 1)
  }

  @Test("the example of the handle")
  func handle() {
    let reminder = ReminderEvent(text: "tea").scheduleQueue(after: .seconds(180))
    if reminder.cancel() { print("in time") }
    #expect(reminder.state == .cancelled)
  }
}
