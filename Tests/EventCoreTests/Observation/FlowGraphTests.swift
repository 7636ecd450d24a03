// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Flow graphs: who dispatches which events to whom")
struct FlowGraphTests {
  struct Goal: Eventable {}

  /// A thread that answers each step with two echoes, and another one that counts them.
  private func played(_ core: EventCentral.Core) -> EventFlowGraph {
    let central = EventCentral(deterministic: 1, core: core)
    let player = EventThread(on: central, name: "player")
    let referee = EventThread(on: central, name: "the \"referee\"")
    player.addEventCallback { (_: Step) in
      for _ in 0..<2 { Echo().queue(on: central) }
    }
    referee.addEventCallback { (_: Echo) in }
    referee.addEventCallback { (_: Goal) in }
    let observation = central.observe()
    for _ in 0..<3 { Step().queue(on: central) }
    central.run()
    let graph = central.flowGraph
    observation.end()
    player.cancel()
    referee.cancel()
    central.run()
    return graph
  }

  @Test("they name sources, types and receivers, and count", arguments: cores)
  func counts(core: EventCentral.Core) {
    let graph = played(core)
    #expect(
      graph.dispatches == [
        .init(type: "EventCoreTests.Echo", source: "player", count: 6),
        .init(type: "EventCoreTests.Step", source: nil, count: 3),
      ])
    #expect(graph.deliveries.map(\.count) == [3, 6])
    #expect(graph.deliveries.map(\.receiver) == ["player", "the \"referee\""])
  }

  @Test("Mermaid", arguments: cores)
  func mermaid(core: EventCentral.Core) {
    #expect(
      played(core).mermaid == """
        flowchart LR
          p0["player"]
          p1["outside"]
          p2["the #34;referee#34;"]
          t0(["EventCoreTests#46;Echo"])
          t1(["EventCoreTests#46;Step"])
          p0 -->|6| t0
          p1 -->|3| t1
          t1 -->|3| p0
          t0 -->|6| p2

        """)
  }

  @Test("Graphviz", arguments: cores)
  func graphviz(core: EventCentral.Core) {
    #expect(
      played(core).graphviz == """
        digraph events {
          rankdir=LR;
          p0 [shape=box, label="player"];
          p1 [shape=box, label="outside"];
          p2 [shape=box, label="the \\"referee\\""];
          t0 [shape=ellipse, label="EventCoreTests.Echo"];
          t1 [shape=ellipse, label="EventCoreTests.Step"];
          p0 -> t0 [label="6"];
          p1 -> t1 [label="3"];
          t1 -> p0 [label="3"];
          t0 -> p2 [label="6"];
        }

        """)
  }

  @Test("names with the signs of markup are drawn as they are")
  func signs() {
    let types = ["Box<Int>", "Box<String>"]
    let graph = EventFlowGraph(
      EventStatistics(
        receivers: [], dispatches: types.map { .init(type: $0, source: "\\R&amp;D #1; \"<b>\"", count: 1) }))
    #expect(
      graph.mermaid == """
        flowchart LR
          p0["#92;R#38;amp#59;D #35;1#59; #34;#60;b#62;#34;"]
          t0(["Box#60;Int#62;"])
          t1(["Box#60;String#62;"])
          p0 -->|1| t0
          p0 -->|1| t1

        """)
    #expect(graph.graphviz.contains(#"label="\\R&amp;amp;D #1; \"<b>\""];"#))
    #expect(graph.graphviz.contains(#"label="Box<Int>"];"#))
  }

  @Test("a name breaks neither the lines of the table nor those of the graph, nor is it taken for Markdown")
  func controls() {
    let name = "`a\n\u{2028}\u{2029}b\u{1B}[2J`"
    let statistics = EventStatistics(
      receivers: [
        .init(
          name: name, hasEnded: false,
          mailbox: .init(accepted: 1, refused: 0, dropped: 0, waiting: 0, highWaterMark: 0),
          counts: .init(delivered: 1, skipped: 0, cancelled: 0), types: [])
      ], dispatches: [.init(type: "Box", source: name, count: 1)])
    let lines = statistics.description.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.last?.hasPrefix("`ab[2J`") == true)
    let graph = EventFlowGraph(statistics)
    #expect(graph.mermaid.contains("  p0[\"#96;a<br/>b#91;2J#96;\"]\n"))
    #expect(graph.graphviz.contains("label=\"`a\\nb[2J`\"]"))
  }

  @Test("Mermaid takes no name for a line break, a style, an icon, a formula or a list, and an empty one for a box")
  func mermaidSigns() {
    func expect(_ name: String, _ label: String) {
      let graph = EventFlowGraph(
        EventStatistics(receivers: [], dispatches: [.init(type: "Box", source: name, count: 1)]))
      #expect(graph.mermaid.contains("  p0[\"\(label)\"]\n"))
    }
    expect("C:\\new", "C#58;#92;new")
    expect("style:<main>", "style#58;#60;main#62;")
    expect("fa:fa-car", "fa#58;fa#45;car")
    expect("$$x^2$$", "#36;#36;x#94;2#36;#36;")
    expect("1. item", "1#46; item")
    expect("größe_9 é", "größe#95;9 é")
    for name in ["", "\u{1B}"] { expect(name, " ") }
  }

  @Test("signs below an accent are escaped, too")
  func accentedSigns() {
    let graph = EventFlowGraph(
      EventStatistics(receivers: [], dispatches: [.init(type: "Box", source: "a\"\u{301}b", count: 1)]))
    #expect(graph.mermaid.contains("[\"a#34;\u{301}b\"]"))
    #expect(graph.graphviz.contains("label=\"a\\\"\u{301}b\"]"))
  }

  @Test("dispatches of many receivers that come and go are kept by their names", arguments: cores)
  func churn(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Echo) in }
    let observation = central.observe(times: .none)
    // More than a thread looks at before it lets go of those that are over.
    for _ in 0..<300 {
      let guest = EventPump(on: central)
      guest.addEventCallback { (_: Step) in Echo().queue(on: central) }
      guest.queueEvent(Step())
      guest.run()
      guest.cancel()
      guest.run()
    }
    pump.run()
    let sources = central.flowGraph.dispatches.filter { $0.type == "EventCoreTests.Echo" }
    #expect(sources.reduce(0) { $0 + $1.count } == 300)
    #expect(sources.count < 200)
    #expect(central.statistics.handled(Step.self).delivered == 300)
    #expect(central.statistics.handled(Echo.self).delivered == 300)
    observation.end()
    pump.cancel()
    pump.run()
  }
}
