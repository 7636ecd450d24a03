// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventNode {
  /// Draws the whole tree of this node as text: a line for each node, with its handlers.
  ///
  /// ```
  /// app  [ThemeChanged: onPropagate]
  /// ├─ cart  ◀ here
  /// │  └─ button  [ItemAdded: onRaise, consumeEvent]
  /// └─ badge  [ItemAdded: onPropagate @ listenerThread]
  /// ```
  ///
  /// Nodes deeper than 32 have their depth in front instead of a branch.
  ///
  /// **Threads**: any. It shows the tree at one moment, during which no other thread can change or query
  /// trees; on the lock-free core threads can raise.
  ///
  /// **Complexity**: O(nodes and handlers of the tree), in time and memory.
  public final func diagram() -> String { text(TreeSnapshot(around: self).nodes) }

  /// Describes the tree as a `digraph` in the language of Graphviz. All else is as for ``diagram()``.
  public final func graphvizDiagram() -> String {
    graphviz(TreeSnapshot(around: self).nodes)
  }

  /// Describes the tree as a `graph` in the language of Mermaid, which many Markdown viewers draw. All else
  /// is as for ``diagram()``.
  public final func mermaidDiagram() -> String {
    mermaid(TreeSnapshot(around: self).nodes)
  }
}

/// The largest depth at which branches are drawn, since each line repeats those of the nodes above it.
private let deepestBranch = 32

private func text(_ nodes: [TreeSnapshot.Node]) -> String {
  var text = ""
  // What is drawn in front of the children of a node, by the node's depth.
  var indents = [""]
  for node in nodes {
    if node.depth > deepestBranch {
      text += "… \(node.depth)  "
    } else if node.depth > 0 {
      let indent = indents[node.depth - 1]
      text += indent + (node.isLastChild ? "└─ " : "├─ ")
      indents.removeSubrange(node.depth...)
      indents.append(indent + (node.isLastChild ? "   " : "│  "))
    }
    text += node.label.escaped(["\n": " "])
    if !node.handlers.isEmpty {
      text += "  [\(node.handlers.map { $0.description.escaped(["\n": " "]) }.joined(separator: "; "))]"
    }
    text += node.isHere ? "  ◀ here\n" : "\n"
  }
  return text
}

private func graphviz(_ nodes: [TreeSnapshot.Node]) -> String {
  var text = "digraph EventTree {\n  node [shape=box];\n"
  for (index, node) in nodes.enumerated() {
    let label = node.texts.map(\.graphvizLabel).joined(separator: "\\n")
    text += "  n\(index) [label=\"\(label)\"\(node.isHere ? ", style=bold, xlabel=\"here\"" : "")];\n"
    if let parent = node.parent { text += "  n\(parent) -> n\(index);\n" }
  }
  return text + "}\n"
}

private func mermaid(_ nodes: [TreeSnapshot.Node]) -> String {
  var text = "graph TD\n  classDef here stroke-width:4px\n"
  for (index, node) in nodes.enumerated() {
    let label = node.texts.map(\.mermaidLabel).joined(separator: "<br/>")
    text += "  n\(index)[\"\(label)\"]\(node.isHere ? ":::here" : "")\n"
    if let parent = node.parent { text += "  n\(parent) --> n\(index)\n" }
  }
  return text
}

extension TreeSnapshot.Node {
  /// The lines of its box: its label and its handlers.
  fileprivate var texts: [String] { [label] + handlers.map(\.description) }
}
