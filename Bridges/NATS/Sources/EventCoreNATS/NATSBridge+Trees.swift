// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@_spi(Bridge) import EventCore
import Foundation

extension NATSBridge {
  /// Joins a part of a tree with the trees of other machines, under a subject.
  ///
  /// ```swift
  /// try bridge.mount(plant, at: "plant", carrying: [TemperatureEvent.self])
  /// // On another machine; raises at the node line2 of hall1 there:
  /// line2.raise(event: TemperatureEvent(…))      // goes out as plant.hall1.line2.sensors.temperature
  /// ```
  ///
  /// An event that is raised at the node or below it goes out when it climbs past the node: under the prefix, the names
  /// of the nodes down to the one that raised it, and the event's own subject. Spaces, dots, `*`, `>` and `%` of a name
  /// are written as in a URL, and an empty one as `%`. One that is consumed below stays here, and so does one that does
  /// not climb: raised without `.bubbling`, or propagated. One that a handler of the node itself consumes goes out if
  /// that handler was added after the mount, and stays if before. There it goes as far as it was raised to go here
  /// (`scope`), also if a handler here consumes it above the node, or when it propagates. One whose node has left the
  /// mounted one while it climbed, by a handler or another thread, has no path: it is counted as ``Counts/unsent``.
  ///
  /// What comes in is raised at the node with the same names, and does not go out again; what its handlers raise does.
  /// Bridges of one central do not exchange what is raised in their trees (``Counts/own``): each tree of a process needs
  /// a central of its own.
  /// Without such a node it is counted as ``Counts/unheard``; of several nodes with one name the first one gets it. One
  /// whose path has more than some 4,000 bytes is counted as ``Counts/tooLarge`` where it is raised. Mount no node
  /// below another one for the same type: each sends what is raised below both.
  ///
  /// - Parameters:
  ///   - node: Not retained: the registration ends with it. (If all handlers of the node were removed before, nothing
  ///     is sent any more, and it ends with the bridge.)
  ///   - prefix: Words that are separated by dots.
  ///   - types: Which events to exchange, with subjects none of which ends with another one: `hall.alarm` would also be
  ///     an `alarm` of a node `hall`.
  /// - Returns: Ends it. It stays if it is released. What still waits in the outbox is not sent then, and counted as
  ///   ``Counts/unsent``; what a node has raised that is gone is sent.
  /// - Throws: If the bridge was closed.
  ///
  /// **Threads**: what comes in is raised on a thread of the client, where handlers of the tree run that name no other
  /// place.
  ///
  /// **Complexity**: of what comes in, O(siblings) at each level of its path.
  @discardableResult
  public func mount(
    _ node: EventNode, at prefix: String, carrying types: [any RemoteEvent.Type]
  ) throws(NATSBridgeError) -> RemoteRegistration {
    checkSubject(prefix, of: "the node \(node.path)")
    let life = NodeLife()
    for (index, type) in types.enumerated() {
      for (otherIndex, other) in types.enumerated() where otherIndex != index {
        guard pathWords(type.subject, before: other.subject) != nil else { continue }
        fatalError(
          """
          A mounted node exchanges types whose subjects do not end with one another, since the path of a node stands \
          before them, and "\(type.subject)" of \(type) ends with "\(other.subject)" of \(other): name each type once, \
          and give one of the two another subject, or mount the node for it under another prefix.
          """)
      }
    }
    let entries = types.map { TreeEntry($0, node, prefix, self, life) }
    weak let place = node
    let (counters, prefixLength) = (counters, prefix.utf8.count + 1)
    let undo = { for entry in entries { entry.end() } }
    let incoming = try receive("\(prefix).>", nil, or: undo) { message in
      let subject = natsMsg_GetSubject(message).map { String(cString: $0) } ?? ""
      let rest = String(subject.utf8.dropFirst(prefixLength)) ?? ""
      for entry in entries {
        guard let words = pathWords(rest, before: entry.suffix) else { continue }
        return entry.raise(message, place.flatMap { find(words, below: $0) })
      }
      counters.received.increment()
      counters.foreign.increment()
    }
    let registration = keep(RemoteRegistration([{ incoming.remove() }] + entries.map(\.end), of: self))
    // Their handlers may have been removed, from a node that lives on.
    life.whenOver { if place == nil { registration.remove() } }
    return registration
  }
}

/// The node's handlers have the only references: it ends with them, which is when the node ends, or all of them are
/// removed.
private final class NodeLife: Sendable {
  private let over = Locked<(@Sendable () -> Void)?>(nil)

  /// Has a closure called at the end. It may wait for the network, which who lets go of a node does not.
  func whenOver(_ body: @escaping @Sendable () -> Void) { over.withLock { $0 = body } }

  deinit {
    if let body = over.withLock({ $0 }) { DispatchQueue.global().async(execute: body) }
  }
}

/// What a mounted node does for one type.
private struct TreeEntry: Sendable {
  let suffix: String
  let raise: @Sendable (_ message: OpaquePointer, _ node: EventNode?) -> Void
  let end: @Sendable () -> Void

  init<E: RemoteEvent>(_ type: E.Type, _ node: EventNode, _ prefix: String, _ bridge: NATSBridge, _ life: NodeLife) {
    suffix = E.subject
    let reader = Reader(E.self, bridge)
    let (counters, central) = (bridge.counters, bridge.central)
    raise = { message, node in
      guard let (event, _) = reader.read(message) else { return }
      guard let scope = EventRaiseScope(of: message) else { return counters.malformed.increment() }
      guard let node else { return counters.unheard.increment() }
      central.withCarriedFields(fields(of: message)) { node.raiseInward(event: event, scope: scope) }
      counters.dispatched.increment()
    }
    // Through the outbox: the thread that raises waits for nobody.
    let outlet = Outlet(E.self, bridge)
    let (thread, batch) = (bridge.thread, bridge.batch)
    let isRemoved = Locked(false)
    weak let place = node
    let leaveOut = { @Sendable in
      // What is in the batch may have nothing else behind it.
      batch.send()
      counters.unsent.increment()
    }
    let handler = node.addHandler(.onRaise, for: E.self) { context in
      guard !context.isInward, let node = place else { return .continue }
      guard let below = node.nodes(downTo: context.source) else {
        // Through the outbox as well, so that the counts add up.
        thread.queueEvent(Posted(send: leaveOut))
        return .continue
      }
      let words = [prefix] + below.map { subjectWord(wireName($0)) } + [E.subject]
      let (event, scope, time) = (context.event, context.scope, central.now)
      let posted = Posted {
        if isRemoved.withLock({ $0 }) { return leaveOut() }
        outlet.send(event, under: words.joined(separator: "."), .queue, .normal, time) {
          scope.write(to: $0)
          return Link.publish($0, $1)
        }
      }
      thread.queueEvent(posted)
      return withExtendedLifetime(life) { .continue }
    }
    end = {
      // What a node has raised that is gone still goes out.
      if place != nil { isRemoved.withLock { $0 = true } }
      handler.remove()
    }
  }
}

/// The names of the nodes in what follows the prefix of a subject; nil if that does not end with the subject of a type.
private func pathWords(_ rest: String, before suffix: String) -> [Substring]? {
  // Bytes: a name may begin with a mark that would make one character with the dot before it.
  let (bytes, end) = (rest.utf8, ".\(suffix)".utf8)
  if bytes.elementsEqual(end.dropFirst()) { return [] }
  guard bytes.suffix(end.count).elementsEqual(end) else { return nil }
  return bytes.dropLast(end.count).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    .map { Substring($0) }
}

extension EventRaiseScope {
  /// The header with the phases of an event that does not go through the whole tree.
  private static let key = "EventCore-Scope"
  private static let names: [(name: String, phase: EventRaiseScope)] = [
    ("capturing", .capturing), ("bubbling", .bubbling), ("propagating", .propagating),
  ]

  fileprivate func write(to message: OpaquePointer) {
    guard self != .tree else { return }
    natsMsgHeader_Set(message, Self.key, Self.names.filter { contains($0.phase) }.map(\.name).joined(separator: " "))
  }

  /// Nil if the message names another phase, or none.
  fileprivate init?(of message: OpaquePointer) {
    self = .tree
    var line: UnsafePointer<CChar>?
    guard natsMsgHeader_Get(message, Self.key, &line) == NATS_OK, let line else { return }
    self = []
    for word in String(cString: line).split(separator: " ") {
      guard let known = Self.names.first(where: { $0.name == word }) else { return nil }
      insert(known.phase)
    }
    if isEmpty { return nil }
  }
}

/// By which the other machines know a node.
private func wireName(_ node: EventNode) -> String { node.name ?? "\(type(of: node))" }

/// A name as a word of a subject: what subjects cannot have is written as in a URL.
func subjectWord(_ name: String) -> String {
  guard !name.isEmpty else { return "%" }
  return name.unicodeScalars.reduce(into: "") { word, scalar in
    if scalar.value <= 32 || scalar.value == 127 || ".*>%".unicodeScalars.contains(scalar) {
      word += "%" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16, uppercase: true)
    } else {
      word.unicodeScalars.append(scalar)
    }
  }
}

/// The name that a word of a subject stands for; nil if it stands for none.
private func nodeName(of word: Substring) -> String? {
  let parts = word.utf8.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false)
  var bytes = Array(parts[0])
  for part in parts.dropFirst() {
    if let byte = UInt8(String(decoding: part.prefix(2), as: UTF8.self), radix: 16) { bytes.append(byte) }
    bytes += part.dropFirst(2)
  }
  let name = String(decoding: bytes, as: UTF8.self)
  // Bytes: to the server, names in two forms of Unicode are two.
  return subjectWord(name).utf8.elementsEqual(word.utf8) ? name : nil
}

private func find(_ words: [Substring], below top: EventNode) -> EventNode? {
  var node = top
  for word in words {
    guard let name = nodeName(of: word),
      let next = node.children.first(where: { wireName($0).utf8.elementsEqual(name.utf8) })
    else { return nil }
    node = next
  }
  return node
}
