// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@_spi(Bridge) import EventCore
import Foundation
import Synchronization

extension NATSBridge {
  /// Lets this machine's requests find answers on others.
  ///
  /// ```swift
  /// try bridge.forwardRequests(PriceQuery.self, expecting: Price.self)
  /// let price = try await world.request(PriceQuery(id: 7), expecting: Price.self, within: .milliseconds(50))
  /// ```
  ///
  /// The bridge is one more answerer of the central. It throws `EventWaitError.nobodyAnswers` if no machine answers
  /// such requests, `EventWaitError.timedOut(_:)` if none has answered in time, and ``NATSBridgeError`` with
  /// ``NATSBridgeError/Reason/answerFailed`` if the answerer threw an error there, or is too busy.
  ///
  /// - Parameters:
  ///   - query: What is asked.
  ///   - answer: The type of the answer.
  ///   - coding: The form of the answer, the same on both sides.
  ///   - limit: How long to wait for another machine. A requester that waits less than that gives up by itself.
  ///   - concurrency: How many requests may be under way at one time; others wait in the central.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed.
  @discardableResult
  public func forwardRequests<Query: RemoteEvent, Answer: Codable & Sendable>(
    _ query: Query.Type, expecting answer: Answer.Type, coding: RemoteCoding<Answer> = .json,
    within limit: Duration = .seconds(5), concurrency: Int = 256
  ) throws(NATSBridgeError) -> RemoteRegistration {
    claim(Query.self, Answer.self, .forwarded)
    let requests = PendingRequests(link)
    let replies = try receive(requests.pattern, nil) { requests.takeReply($0) }
    let outlet = RequestOutlet(Query.self, self, requests)
    let handle = Query.answer(on: central, concurrency: .concurrent(concurrency)) {
      (query: Query) async throws -> Answer in
      try coding.decode(try await outlet.ask(query, within: limit), nil)
    }
    let claims = claims
    return keep(
      RemoteRegistration(
        [
          { handle.remove() }, { replies.remove() }, { requests.end() },
          { claims.withLock { _ = $0.removeValue(forKey: Claim(Query.self, Answer.self)) } },
        ], of: self))
  }

  /// Answers requests of other machines with the answerers of this one.
  ///
  /// ```swift
  /// PriceQuery.answer(on: world) { query in Price(cents: prices[query.id]) }
  /// try bridge.answerRequests(PriceQuery.self, with: Price.self)
  /// ```
  ///
  /// - Parameters:
  ///   - query: What is asked.
  ///   - answer: The type of the answer.
  ///   - coding: The form of the answer, the same on both sides.
  ///   - group: Of all bridges of a group one answers each request.
  ///   - limit: How long an answerer may take.
  ///   - concurrency: How many requests may be under way at one time; others are turned away.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed.
  @discardableResult
  public func answerRequests<Query: RemoteEvent, Answer: Codable & Sendable>(
    _ query: Query.Type, with answer: Answer.Type, coding: RemoteCoding<Answer> = .json, group: String = "answerers",
    within limit: Duration = .seconds(30), concurrency: Int = 256
  ) throws(NATSBridgeError) -> RemoteRegistration {
    claim(Query.self, Answer.self, .answered)
    let reader = Reader(Query.self, self)
    let (link, central, counters) = (link, central, counters)
    let running = Counter()
    let subscription = try receive(requestSubject(Query.self), group) { message in
      guard let (query, origin) = reader.read(message), let reply = natsMsg_GetReply(message) else { return }
      let subject = String(cString: reply)
      counters.dispatched.increment()
      guard running.add(1) <= concurrency else {
        running.add(-1)
        return link.send(subject, failure: "it has \(concurrency) requests in the making")
      }
      let answer = { @Sendable () async in
        defer { running.add(-1) }
        do {
          let answer = try await central.request(
            query, expecting: Answer.self, within: limit, priority: origin.priority)
          link.send(subject, try coding.encode(answer))
        } catch {
          link.send(subject, failure: "\(error)")
        }
      }
      central.withCarriedFields(fields(of: message)) { _ = Task { await answer() } }
    }
    let claims = claims
    return keep(
      RemoteRegistration(
        [
          { subscription.remove() },
          { claims.withLock { _ = $0.removeValue(forKey: Claim(Query.self, Answer.self)) } },
        ], of: self))
  }

  private func claim<Query: RemoteEvent, Answer>(_ query: Query.Type, _ answer: Answer.Type, _ use: Claim.Use) {
    let claim = Claim(Query.self, Answer.self)
    let other = claims.withLock { $0.updateValue(use, forKey: claim) }
    guard let other else { return }
    fatalError(
      """
      A bridge either forwards the requests of a kind or answers them, once, and those of \(Query.self) for \
      \(Answer.self) are \(other) already: what it answered would go out again. Remove that registration first.
      """)
  }
}

/// A kind of requests.
struct Claim: Hashable {
  enum Use { case forwarded, answered }
  private let query: ObjectIdentifier
  private let answer: ObjectIdentifier

  init<Query, Answer>(_ query: Query.Type, _ answer: Answer.Type) {
    (self.query, self.answer) = (ObjectIdentifier(query), ObjectIdentifier(answer))
  }
}

private final class Counter: Sendable {
  private let value = Atomic<Int>(0)
  @discardableResult
  func add(_ count: Int) -> Int { value.wrappingAdd(count, ordering: .relaxed).newValue }
}

/// Beside the subject of the event, since the type may be published as well.
private func requestSubject<Query: RemoteEvent>(_ query: Query.Type) -> String {
  checkSubject(Query.subject, of: "the RemoteEvent \(Query.self)")
  return "\(Query.subject).request"
}

/// Sends the requests of one type.
private struct RequestOutlet<Query: RemoteEvent>: Sendable {
  private let coding: RemoteCoding<Query>
  private let subject = requestSubject(Query.self)
  private let header: HeaderWriter
  private let requests: PendingRequests
  private let central: EventCentral

  init(_ type: Query.Type, _ bridge: NATSBridge, _ requests: PendingRequests) {
    coding = Query.coding
    header = HeaderWriter(Query.self, coding, sender: bridge.sender)
    self.requests = requests
    central = bridge.central
  }

  func ask(_ query: Query, within limit: Duration) async throws -> Data {
    let body = try coding.encode(query)
    let line = header.line(.queue, .normal, time: wallClock())
    let fields = central.carriedFields
    return try await requests.send(within: limit) { reply in
      body.withUnsafeBytes { makeMessage(subject, line, $0, fields, reply: reply) }
    }
  }
}
