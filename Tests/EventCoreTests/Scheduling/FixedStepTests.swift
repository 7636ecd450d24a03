// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("FixedStep: steps of one length in frames of any length")
struct FixedStepTests {
  struct Key: Eventable { var number = 0 }

  private let start = ContinuousClock.now
  private let length: Duration = .milliseconds(20)

  @Test("A frame has the steps that are due, and the way to the next one")
  func frames() {
    var clock = FixedStep(every: length, from: start)
    let frames: [(Int, Range<Int>, Double)] = [
      (0, 0..<0, 0), (5, 0..<0, 0.25), (19, 0..<0, 0.95), (20, 0..<1, 0), (20, 1..<1, 0), (50, 1..<2, 0.5),
      (79, 2..<3, 0.95), (150, 3..<7, 0.5), (140, 7..<7, 0), (160, 7..<8, 0),
    ]
    for (time, steps, interpolation) in frames {
      #expect(clock.steps(until: start + .milliseconds(time)) == steps)
      #expect(clock.interpolation == interpolation)
      #expect(clock.count == steps.upperBound)
    }
    #expect(clock.skipped == 0)
  }

  @Test("No step is due before the start")
  func early() {
    var clock = FixedStep(every: length, from: start)
    #expect(clock.steps(until: start - .seconds(1)).isEmpty)
    #expect(clock.interpolation == 0)
    #expect(clock.steps(until: start + length) == 0..<1)
  }

  @Test("A time that goes back has no step, whatever the bound")
  func back() {
    for most in [2, .max] {
      var clock = FixedStep(every: length, atMost: most, from: start)
      #expect(clock.steps(until: start + length * 2) == 0..<2)
      #expect(clock.steps(until: start) == 2..<2)
      #expect(clock.skipped == 0)
    }
  }

  @Test("Catching up is bounded, and what is skipped is counted once")
  func bound() {
    for most in 1...4 {
      var clock = FixedStep(every: length, atMost: most, from: start)
      // Ten steps and a half, of which `most` are done.
      #expect(clock.steps(until: start + .milliseconds(210)) == 0..<most)
      #expect(clock.skipped == 10 - most)
      #expect(clock.interpolation == 0.5)
      #expect(clock.steps(until: start + .milliseconds(219)).isEmpty)
      #expect(clock.steps(until: start + .milliseconds(220)) == most..<most + 1)
      #expect(clock.skipped == 10 - most)
      // Steps that take longer than their length: the bound in each frame.
      for frame in 1...5 {
        let steps = clock.steps(until: start + .milliseconds(220 + 1_000 * frame))
        #expect(steps.count == most)
        #expect(clock.skipped == 10 - most + frame * (50 - most))
      }
    }
  }

  @Test("More steps than there are numbers are skipped without a trap")
  func endless() {
    var clock = FixedStep(every: .nanoseconds(1), atMost: 5, from: start)
    for frame in 0..<3 {
      #expect(clock.steps(until: start + .seconds(Int64.max)) == 5 * frame..<5 * frame + 5)
      #expect(clock.skipped >= .max - 5)
    }
  }

  @Test("Steps and the way to the next add up to the time, whatever the frames")
  func sums() {
    var random = SeededRandom(seed: announcedSeed("steps and frames"))
    // A length that no number of nanoseconds is.
    let length: Duration = .seconds(1) / 60
    for _ in 0..<100 {
      var clock = FixedStep(every: length, atMost: .max, from: start)
      var (time, next) = (Duration.zero, 0)
      for _ in 0..<100 {
        time += .microseconds(Int.random(in: 0...60_000, using: &random))
        let steps = clock.steps(until: start + time)
        #expect(steps.lowerBound == next)
        next = steps.upperBound
        #expect(length * next <= time && time < length * (next + 1))
        #expect((0..<1).contains(clock.interpolation))
        let reached = (Double(next) + clock.interpolation) * (length / .seconds(1))
        #expect(abs(reached - time / .seconds(1)) < 1e-9)
      }
    }
    // After an hour of frames it is still exact.
    var clock = FixedStep(every: length, atMost: .max, from: start)
    #expect(clock.steps(until: start + length * 216_000).count == 216_000)
    #expect(clock.interpolation == 0)
  }

  @Test("D4: an event reaches exactly one step, in frames with none, one and several", arguments: cores)
  func events(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("events and steps, \(core)"))
    let pump = EventPump(on: EventCentral(core: core))
    var clock = FixedStep(every: length, atMost: 3, from: start)
    var (time, posted, current) = (Duration.zero, 0, -1)
    // Of each event: the step that saw it, and the first step after it was posted.
    var (seen, expected): ([Int], [Int]) = ([], [])
    pump.addEventCallback { (key: Key) in
      #expect(key.number == seen.count)
      seen.append(current)
    }
    for _ in 0..<2_000 {
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        pump.queueEvent(Key(number: posted))
        expected.append(clock.count)
        posted += 1
      }
      time += .milliseconds(Int.random(in: 0...100, using: &random))
      for step in clock.steps(until: start + time) {
        current = step
        pump.run()
      }
    }
    current = clock.count
    pump.run()
    #expect(seen == expected)
    #expect(clock.skipped > 0)
  }

  @Test("D12: a step without a length, and a frame without a step, trap")
  func traps() async {
    let length = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = FixedStep(every: .zero)
    }
    expectMessage(length, "take a time above zero, and these take 0.0 seconds")
    let most = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = FixedStep(every: .seconds(1), atMost: 0)
    }
    expectMessage(most, "may have at least one step, and this one at most 0")
  }
}
