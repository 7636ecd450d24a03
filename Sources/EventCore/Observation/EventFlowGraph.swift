// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Who dispatches which events to whom, with counts, as text that draws itself.
///
/// ```swift
/// print(world.flowGraph.mermaid)
/// ```
///
/// An arrow leads from whoever dispatched, a receiver whose handler did it or "outside", to a type of events, and from
/// there to each receiver whose handlers were called. What an `async` handler, a handler of another central, a
/// schedule at its time, or a task or a thread of your own dispatches comes from outside. Of an `async` handler all
/// events count that its task has taken (``EventStatistics/Handled``).
public struct EventFlowGraph: Sendable, Equatable, Codable {
  /// Who has dispatched events of which type, and how many.
  public let dispatches: [EventStatistics.Dispatches]
  /// Which receivers have handled them.
  public let deliveries: [Delivery]

  /// The events of one type that one receiver has handled.
  public struct Delivery: Sendable, Equatable, Codable {
    /// The type, with its module.
    public let type: String
    /// The receiver's name.
    public let receiver: String
    /// How many events.
    public let count: UInt64
  }

  /// The graph of what statistics have counted.
  public init(_ statistics: EventStatistics) {
    dispatches = statistics.dispatches.filter { $0.count > 0 }
    deliveries = statistics.receivers.flatMap { receiver in
      receiver.types.filter { $0.delivered > 0 }.map {
        Delivery(
          type: $0.type, receiver: receiver.name + (receiver.hasEnded ? " (ended)" : ""), count: $0.delivered)
      }
    }
  }

  /// A flowchart for Mermaid, which shows it in Markdown.
  public var mermaid: String {
    let nodes = Nodes(self)
    return
      (["flowchart LR"]
      + nodes.places.map { "  p\($0.value)[\"\($0.key.mermaidLabel)\"]" }.sorted()
      + nodes.types.map { "  t\($0.value)([\"\($0.key.mermaidLabel)\"])" }.sorted()
      + nodes.arrows.map { "  \($0.from) -->|\($0.count)| \($0.to)" }).joined(separator: "\n") + "\n"
  }

  /// A graph for Graphviz: `dot -Tsvg`.
  public var graphviz: String {
    let nodes = Nodes(self)
    return
      (["digraph events {", "  rankdir=LR;"]
      + nodes.places.map { "  p\($0.value) [shape=box, label=\"\($0.key.graphvizLabel)\"];" }.sorted()
      + nodes.types.map { "  t\($0.value) [shape=ellipse, label=\"\($0.key.graphvizLabel)\"];" }.sorted()
      + nodes.arrows.map { "  \($0.from) -> \($0.to) [label=\"\($0.count)\"];" } + ["}"]).joined(separator: "\n") + "\n"
  }

  /// The numbers of all places and types, and the arrows between them.
  private struct Nodes {
    var places: [String: Int] = [:]
    var types: [String: Int] = [:]
    var arrows: [(from: String, to: String, count: UInt64)] = []

    init(_ graph: EventFlowGraph) {
      for dispatch in graph.dispatches {
        let source = Self.number(dispatch.source ?? "outside", &places)
        arrows.append(("p\(source)", "t\(Self.number(dispatch.type, &types))", dispatch.count))
      }
      for delivery in graph.deliveries {
        let receiver = Self.number(delivery.receiver, &places)
        arrows.append(("t\(Self.number(delivery.type, &types))", "p\(receiver)", delivery.count))
      }
    }

    private static func number(_ name: String, _ names: inout [String: Int]) -> Int {
      let number = names[name] ?? names.count
      names[name] = number
      return number
    }
  }
}
