// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ArgumentParser
import EventCore
import FileOptions
import MachineSamples
import StatisticsSocket
import TerminalScreen

/// The command line, and the order in which its tasks run.
@main
struct Demo: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "eventcore-demo",
    abstract: "A 120 Hz loop whose world is this machine: the kernel's counters as events.",
    discussion: """
      A sensor thread samples processors, memory, interrupts, context switches, network and disks \
      a thousand times a second, and dispatches each sample as an event of its own type. One event \
      thread keeps rates, another one looks for spikes and sends alarms past everything that \
      waits. The loop shows the latest state. At the end the same samples run through each core at \
      full speed, and at loads that are the same for both.

      In a terminal: q quits, b fires a burst of a million events, + and - change the load.
      """)

  // Unconditional, so that `validate` refuses a negative number with its own message.
  @Option(
    parsing: .unconditional,
    help: "How long to run (default: 10, or as long as the recording lasted).")
  var seconds: Double?

  @Option(help: ArgumentHelp("Write the samples to a file.", valueName: "file"))
  var record: String?

  @Option(
    help: ArgumentHelp(
      "Replay a file instead of sampling; --seconds makes it faster or slower.", valueName: "file"))
  var input: String?

  @Option(help: ArgumentHelp("Write a trace of the run to a file, for ui.perfetto.dev.", valueName: "file"))
  var trace: String?

  @Option(help: ArgumentHelp("Show the statistics to eventcore-top by a socket at a path.", valueName: "path"))
  var socket: String?

  @Option(help: "Which implementation of EventCore to run on.")
  var core = CoreChoice(.default)

  @Option(help: "What an event thread does while nothing waits.")
  var wait: WaitChoice = .park

  @Option(
    parsing: .unconditional,
    help: "Events of load for each sample, from 0 to \(Filler.highestLoad).")
  var load = 0

  @Flag(help: "Fire a burst of a million events at half time.")
  var burst = false

  func validate() throws {
    if let seconds, !(seconds > 0 && seconds <= 86_400) {
      throw ValidationError("--seconds is \(seconds): it must be above 0 and at most 86400, a day.")
    }
    if record != nil, input != nil {
      throw ValidationError(
        "--record and --input exclude each other: a replay is recorded already.")
    }
    if let refusal = refusal(ofFiles: ["--record": record, "--input": input, "--trace": trace]) {
      throw ValidationError(refusal)
    }
    if !(0...Filler.highestLoad).contains(load) {
      throw ValidationError("--load is \(load): it must be from 0 to \(Filler.highestLoad).")
    }
    if !EventCentral.Core.available.contains(core.core) {
      throw ValidationError(
        "--core \(core) is not in this build: it was made without the package trait URCU.")
    }
  }

  func run() throws {
    let source = try makeSource()
    let writer = try record.map { try RecordingWriter($0) }
    Signals.block()
    let engine = Engine(
      core: core.core, waitStrategy: wait.strategy, source: source.source, writer: writer,
      load: load)
    var live = LiveRun(
      engine, input: source.name, limit: source.limit, total: source.total, burst: burst)
    let server = try socket.map { try StatisticsServer(engine.central, at: $0) }
    defer { withExtendedLifetime(server) {} }
    let tracing = trace.map { _ in engine.central.startTracing() }
    let start = Clock.now()
    let (ending, counts) = live.run()
    let seconds = Double(Clock.now() - start) / Double(Clock.second)
    let account = engine.finish(pump: live.pump)
    let checksum = engine.checksum
    Signals.unblock()

    Output.line()
    Output.line(Summary(engine: engine, seconds: seconds, counts: counts, account: account).text)
    if let failure = engine.sensor.failure { throw failure }
    if let trace, let summary = try tracing?.finish(writingTo: trace) {
      Output.line("\nTraced \(grouped(summary.handlings)) events to \(trace); open it at ui.perfetto.dev.")
    }
    if let record {
      Output.line("\nRecorded to \(record); replay it with --input \(record).")
    }
    if case .signal(let signal) = ending { throw ExitCode(128 + signal) }
    try compare(engine.sensor, checksum: checksum, lost: account.lost)
  }

  private func compare(_ sensor: SensorThread, checksum: UInt64, lost: Int64) throws {
    let samples = sensor.kept
    // The checksum of the live run is comparable only if all its samples were kept.
    let comparable = samples.count == sensor.sampleCount ? checksum : nil
    let comparison = Comparison(of: samples, waitStrategy: wait.strategy)
    Output.line()
    Output.line(comparison.text(samples: samples.count, checksum: comparable))
    let sweep = LoadSweep(of: samples, waitStrategy: wait.strategy)
    Output.line()
    Output.line(sweep.text)
    if lost != 0 || comparison.lost != 0 || sweep.lost != 0 || !comparison.agrees(with: comparable) || !sweep.agrees {
      throw ExitCode.failure
    }
  }

  private func makeSource() throws -> (
    source: any SampleSource, name: String, limit: Double?, total: Double
  ) {
    guard let input else {
      let seconds = seconds ?? 10
      return (try LiveSource(), "this machine at 1,000 Hz", seconds, seconds)
    }
    let samples = try Recording.read(input)
    let total = seconds ?? ReplaySource.length(of: samples)
    return (ReplaySource(samples, seconds: seconds), "replay", nil, total)
  }
}

/// The cores, as arguments.
enum CoreChoice: String, CaseIterable, ExpressibleByArgument {
  case lockFree, locking

  init(_ core: EventCentral.Core) {
    switch core {
    case .lockFree: self = .lockFree
    case .locking: self = .locking
    }
  }

  var core: EventCentral.Core {
    switch self {
    case .lockFree: .lockFree
    case .locking: .locking
    }
  }
}

/// The wait strategies, as arguments.
enum WaitChoice: String, CaseIterable, ExpressibleByArgument {
  case park, spinThenPark, yield, spin

  var strategy: EventWaitStrategy {
    switch self {
    case .park: .park
    case .spinThenPark: .spinThenPark(.microseconds(100))
    case .yield: .yield
    case .spin: .spin
    }
  }
}
