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

/// In a reply that is no answer: why not.
private let failureKey = "EventCore-Failure"

extension Link {
  fileprivate func send(_ subject: String, _ body: Data) {
    body.withUnsafeBytes { bytes in
      _ = natsConnection_Publish(connection, subject, bytes.baseAddress, Int32(clamping: bytes.count))
    }
  }

  fileprivate func send(_ subject: String, failure: String) {
    var message: OpaquePointer?
    guard natsMsg_Create(&message, subject, nil, nil, 0) == NATS_OK else { return }
    defer { natsMsg_Destroy(message) }
    // A header is a line.
    let line = failure.split(whereSeparator: \.isNewline).joined(separator: " ").prefix(500)
    natsMsgHeader_Set(message, failureKey, String(line))
    natsConnection_PublishMsg(connection, message)
  }
}

/// Requests that wait for their replies, which come on a subject of the bridge's.
private final class PendingRequests: Sendable {
  typealias Reply = Result<Data, any Error>
  private struct Waiting {
    var requester: CheckedContinuation<Data, any Error>
    /// Ends the wait.
    var timer: Task<Void, Never>
  }
  private struct State {
    var waiting: [UInt64: Waiting] = [:]
    var next: UInt64 = 0
    var hasEnded = false
  }
  private let state = Locked(State())
  private let inbox: String
  private let link: Link

  init(_ link: Link) {
    self.link = link
    // That nobody guesses.
    inbox = "_INBOX." + (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
  }

  var pattern: String { "\(inbox).*" }

  /// Sends a request, and waits for its reply.
  func send(within limit: Duration, _ makeMessage: (_ reply: String) -> OpaquePointer?) async throws -> Data {
    let number = state.withLock { state in
      state.next += 1
      return state.next
    }
    let message = makeMessage("\(inbox).\(number)")
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isOpen = state.withLock { state in
          guard !state.hasEnded else { return false }
          // With the lock held, so that the timer finds the request.
          let timer = Task {
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            self.finish(number, .failure(EventWaitError.timedOut(limit)))
          }
          state.waiting[number] = Waiting(requester: continuation, timer: timer)
          return true
        }
        defer { natsMsg_Destroy(message) }
        guard isOpen else {
          return continuation.resume(throwing: NATSBridgeError(.closed, "The bridge forwards no requests any more."))
        }
        let status = message.map { natsConnection_PublishMsg(link.connection, $0) } ?? NATS_MAX_PAYLOAD
        do throws(NATSBridgeError) {
          try NATSBridgeError.check(status, "send a request")
        } catch {
          finish(number, .failure(error))
        }
      }
    } onCancel: {
      finish(number, .failure(CancellationError()))
    }
  }

  func takeReply(_ message: OpaquePointer) {
    guard let subject = natsMsg_GetSubject(message),
      let number = UInt64(String(cString: subject).dropFirst(inbox.count + 1))
    else { return }
    var line: UnsafePointer<CChar>?
    // The server's own word that nobody has subscribed.
    if natsMsgHeader_Get(message, "Status", &line) == NATS_OK, let line, String(cString: line).hasPrefix("503") {
      return finish(number, .failure(EventWaitError.nobodyAnswers))
    }
    if natsMsgHeader_Get(message, failureKey, &line) == NATS_OK, let line {
      return finish(
        number, .failure(NATSBridgeError(.answerFailed, "The answerer on another machine: \(String(cString: line)).")))
    }
    let length = Int(natsMsg_GetDataLength(message))
    finish(number, .success(natsMsg_GetData(message).map { Data(bytes: $0, count: length) } ?? Data()))
  }

  /// The first outcome counts.
  private func finish(_ number: UInt64, _ reply: Reply) {
    guard let one = state.withLock({ $0.waiting.removeValue(forKey: number) }) else { return }
    one.timer.cancel()
    one.requester.resume(with: reply)
  }

  func end() {
    let waiting = state.withLock { state in
      state.hasEnded = true
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for one in waiting {
      one.timer.cancel()
      one.requester.resume(throwing: NATSBridgeError(.closed, "The bridge was closed."))
    }
  }
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
