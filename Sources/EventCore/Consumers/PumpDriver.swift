// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Runs the jobs of a pump in some place. Any thread calls its members.
protocol PumpDriver: AnyObject, Sendable {
  /// Makes the place call `pump.perform()` soon. It must neither wait nor call it itself.
  func schedule(_ pump: ConsumerPump)

  /// As `schedule`, when a job or another turn of the consumer has left something: for a place in which a job that is
  /// made at once would keep out what does not belong to it.
  func goOn(_ pump: ConsumerPump)

  /// False once the actor that ran the jobs has ended.
  var canRun: Bool { get }

  /// Whether any thread may drive the consumer for a moment while no job runs. False for a place whose
  /// closures need not be `Sendable`, and must not be freed elsewhere.
  var lends: Bool { get }

  /// Whether only a job may end the consumer, and so free its closures.
  var endsInItsJobs: Bool { get }

  /// Whether a loop of the user's runs the consumer, so that the core needs no thread on its behalf.
  var isLoop: Bool { get }

  /// The consumer whose events the jobs are; nil if they are none.
  var host: Consumer? { get }

  /// The dispatch queue to which the place belongs; nil for others.
  var target: DispatchQueue? { get }

  /// How many events a task has taken for calls of an `async` handler, how many of these have begun, and how many never
  /// do. The consumer counts all that are taken as delivered.
  var calls: (taken: UInt64, begun: UInt64, dropped: UInt64) { get }

  /// Called on the driving thread when nothing is left, before the last look for news.
  func ranDry()

  /// Called by `ConsumerPump.run` when it leaves nothing, before the next job may be scheduled.
  func willRest()

  /// Called when the consumer has ended and needs no more jobs.
  func finish()
}

extension PumpDriver {
  func goOn(_ pump: ConsumerPump) { schedule(pump) }
  var canRun: Bool { true }
  var lends: Bool { true }
  var endsInItsJobs: Bool { false }
  var isLoop: Bool { false }
  var host: Consumer? { nil }
  var target: DispatchQueue? { nil }
  var calls: (taken: UInt64, begun: UInt64, dropped: UInt64) { (0, 0, 0) }
  func ranDry() {}
  func willRest() {}
  func finish() {}
}

extension Consumer {
  /// False once the pump's driver cannot run jobs any more.
  var canRun: Bool { pump?.driver.canRun ?? true }
  /// Whether a loop of the user's runs it.
  var isDrivenByLoop: Bool { pump?.driver.isLoop ?? false }
}
