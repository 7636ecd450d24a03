// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@_spi(Bridge) import EventCore
import Foundation

extension NATSBridge {
  /// Lets this machine's requests find answers on others.
  ///
  /// ```swift
  /// try bridge.forwardRequests(PriceQuery.self, expecting: Price.self)
  /// let price = try await world.request(PriceQuery(id: 7), expecting: Price.self, within: .milliseconds(50))
  /// ```
  ///
  /// The bridge is one more answerer of the central. It throws ``NATSBridgeError`` with
  /// ``NATSBridgeError/Reason/answerFailed`` if the answerer threw an error there, or is too busy, or the answer is
  /// longer than the server or this bridge takes. Without a reply of another machine it leaves the request to the
  /// answerers of this one. If none of them has it, or has it any more, the requester gets
  /// `EventWaitError.nobodyAnswers` if no machine answers such requests, or that which got it has no answerer or closes,
  /// `EventWaitError.timedOut(_:)` if none has answered in time, and ``NATSBridgeError`` if the bridge could not send
  /// it or was closed. What the coding of the query throws, or that of the answer when it arrives, is thrown as it is.
  ///
  /// - Parameters:
  ///   - query: What is asked.
  ///   - answer: The type of the answer. Its ``RemoteEvent/remoteName`` if it is one, and else its name without those of
  ///     the module and of the types around it, is a word of the subject: requests find the answers of one name.
  ///   - coding: The form of the answer, the same on both sides.
  ///   - limit: How long to wait for another machine, by the clock of this one (`ContinuousClock`), whatever clock the
  ///     central has. A requester that waits less than that gives up by itself.
  ///   - concurrency: How many requests may be under way at one time, at least 1; others wait in the central, and are
  ///     not sent if their requesters give up before. One that was sent is under way until its reply or the limit.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed.
  ///
  /// A request that is made while the server is away leaves when that is back, also after its requester gave up; one
  /// that waits for the first connection leaves only within the limit. Its priority holds on this machine: on the other
  /// one requests are normal.
  ///
  /// **Threads**: requests are encoded and given to the client in a task, one at a time, which waits while the network
  /// takes nothing, up to three heartbeats; answers are decoded on a thread of the client.
  @discardableResult
  public func forwardRequests<Query: RemoteEvent, Answer: Codable & Sendable>(
    _ query: Query.Type, expecting answer: Answer.Type, coding: RemoteCoding<Answer> = .json,
    within limit: Duration = .seconds(5), concurrency: Int = 256
  ) throws(NATSBridgeError) -> RemoteRegistration {
    // Traps unless it is one.
    _ = EventConcurrency.concurrent(concurrency)
    let giveBack = claim(Query.self, Answer.self, .forwarded)
    let requests = PendingRequests(within: limit, options)
    let replies = try receive(requests.pattern, nil, isForReplies: true, or: giveBack) { requests.takeReply($0) }
    let outlet = RequestOutlet(Query.self, requestSubject(Query.self, Answer.self), self, requests)
    let room = Room(for: concurrency)
    let handle = central.answerLater(Query.self, with: Answer.self) { query, give, withdraw in
      room.enter()
      outlet.ask(query) { reply in
        room.leave()
        // A failure of the answerer there is an answer; others say that there is none.
        if case .failure(let error) = reply, (error as? NATSBridgeError)?.reason != .answerFailed {
          withdraw(error)
        } else {
          give(Result { try coding.decode(try reply.get(), nil) })
        }
      }
      // The next one is taken when it can be sent.
      await room.hasRoom()
    }
    return keep(
      RemoteRegistration([{ handle.remove() }, { replies.remove() }, { requests.end() }, giveBack], of: self))
  }

  /// Answers requests of other machines with the answerers of this one. The bridges of a central either forward the
  /// requests of a kind or answer them.
  ///
  /// ```swift
  /// PriceQuery.answer(on: world) { query in Price(cents: prices[query.id]) }
  /// try bridge.answerRequests(PriceQuery.self, with: Price.self)
  /// ```
  ///
  /// Of a group one machine gets a request, and no other is asked after it; of several groups the first reply counts,
  /// whatever it says. If that machine has no answerer, or lets go of the request, or its registration ends meanwhile,
  /// it is as if no machine answered (`EventWaitError.nobodyAnswers` where it was asked, unless an answerer there has
  /// it). So register the answerer first, and end it last. An answerer that throws `EventWaitError.nobodyAnswers` or
  /// `.unanswered` says the same. An answer goes only to a subject that begins with `_INBOX.`, as bridges and the
  /// clients of NATS ask for it, or to one of the server's between two accounts; other requests are
  /// ``Counts/malformed``.
  ///
  /// - Parameters:
  ///   - query: What is asked.
  ///   - answer: The type of the answer, by whose name requests find it.
  ///   - coding: The form of the answer, the same on both sides.
  ///   - group: Of all bridges of a group one gets each request.
  ///   - limit: How long an answerer may take. What it answers later is dispatched as an `EventFailure`.
  ///   - concurrency: How many requests may be under way at one time, at least 1; others are turned away.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed.
  ///
  /// **Threads**: answers are encoded where the answerer gives them, which does not wait for the network, unless the
  /// bridge has ``Options/sendsAtOnce``: then they are written there too.
  @discardableResult
  public func answerRequests<Query: RemoteEvent, Answer: Codable & Sendable>(
    _ query: Query.Type, with answer: Answer.Type, coding: RemoteCoding<Answer> = .json, group: String = "answerers",
    within limit: Duration = .seconds(30), concurrency: Int = 256
  ) throws(NATSBridgeError) -> RemoteRegistration {
    // Traps unless it is one.
    _ = EventConcurrency.concurrent(concurrency)
    let giveBack = claim(Query.self, Answer.self, .answered)
    let reader = Reader(Query.self, self)
    let (link, central, counters) = (link, central, counters)
    let pending = Pending<Result<Data, any Error>>(within: limit)
    let subscription = try receive(requestSubject(Query.self, Answer.self), group, or: giveBack) { message in
      // What is no query was counted. Nobody is told: another group may answer it.
      guard let (query, origin) = reader.read(message) else { return }
      // Nobody could get the answer, or somebody who has not asked.
      guard let subject = replySubject(of: message) else { return counters.malformed.increment() }
      guard pending.count < concurrency else {
        counters.unheard.increment()
        return link.send(subject, failure: "it has \(concurrency) requests in the making")
      }
      let begun = pending.begin { outcome in
        switch outcome {
        case .success(.success(let body)): link.sendAnswer(subject, body)
        // Nobody has the request here, or has it any more: as if there were no such machine.
        case .success(.failure(EventWaitError.nobodyAnswers)), .success(.failure(EventWaitError.unanswered)):
          link.sendNobody(subject)
        case .success(.failure(let error)): link.send(subject, failure: "\(error)")
        case .failure(let error):
          // The bridge's own: it has ended, or it is too late.
          if error is NATSBridgeError { link.sendNobody(subject) } else { link.send(subject, failure: "\(error)") }
        }
      }
      guard let number = begun else { return counters.unheard.increment() }
      counters.dispatched.increment()
      // From here to the answerer's thread, and from there to the server.
      central.withCarriedFields(fields(of: message)) {
        central.request(query, expecting: Answer.self, priority: origin.priority) { answer in
          pending.finish(number, .success(Result { try coding.encode(try answer.get()) }))
        }
      }
    }
    // First the end of what is under way: who waits in the client then hears that nobody answers.
    return keep(RemoteRegistration([{ pending.end() }, { subscription.removeLater() }, giveBack], of: self))
  }

  /// - Returns: Gives the claim back.
  private func claim<Query: RemoteEvent, Answer>(
    _ query: Query.Type, _ answer: Answer.Type, _ use: Claim.Use
  ) -> @Sendable () -> Void {
    let (claim, bridge) = (Claim(Query.self, Answer.self, central), ObjectIdentifier(self))
    let other = Claim.all.withLock { all -> Claim.Use? in
      var known = all[claim] ?? (use, [])
      guard known.use == use, known.bridges.insert(bridge).inserted else { return known.use }
      all[claim] = known
      return nil
    }
    guard let other else {
      return {
        Claim.all.withLock { all in
          all[claim]?.bridges.remove(bridge)
          if all[claim]?.bridges.isEmpty == true { all[claim] = nil }
        }
      }
    }
    fatalError(
      """
      The bridges of a central either forward the requests of a kind or answer them, each once, and those of \
      \(Query.self) for \(Answer.self), or for a type of that name, are \(other) already: what was answered would go out \
      again, or as the other type. Remove that registration first, or give the types names of their own.
      """)
  }
}

/// A kind of requests of a central, which its bridges retain.
private struct Claim: Hashable {
  enum Use { case forwarded, answered }
  /// What the bridges of all centrals do. A bridge gives its claims back when it ends.
  static let all = Locked<[Claim: (use: Use, bridges: Set<ObjectIdentifier>)]>([:])
  private let query: ObjectIdentifier
  private let answer: String
  private let central: ObjectIdentifier

  init<Query, Answer>(_ query: Query.Type, _ answer: Answer.Type, _ central: EventCentral) {
    (self.query, self.answer) = (ObjectIdentifier(query), answerName(answer))
    self.central = ObjectIdentifier(central)
  }
}

/// How many requests may be under way.
private final class Room: Sendable {
  private struct State {
    var count = 0
    var sleeper: CheckedContinuation<Void, Never>?
  }
  private let state = Locked(State())
  private let limit: Int

  init(for limit: Int) { self.limit = limit }

  func enter() { state.withLock { $0.count += 1 } }

  func leave() {
    state.withLock { state in
      state.count -= 1
      defer { state.sleeper = nil }
      return state.sleeper
    }?.resume()
  }

  /// Returns when one more has room. One caller at a time.
  func hasRoom() async {
    await withCheckedContinuation { continuation in
      let hasRoom = state.withLock { state in
        if state.count < limit { return true }
        state.sleeper = continuation
        return false
      }
      if hasRoom { continuation.resume() }
    }
  }
}

/// Of the bridge's own, which no pattern of events has: a stream would acknowledge a request, and a subscriber keep the
/// server from saying that nobody answers. With the type of the answer, since answers are found by the types of both.
private func requestSubject<Query: RemoteEvent, Answer>(_ query: Query.Type, _ answer: Answer.Type) -> String {
  checkSubject(Query.subject, of: "the RemoteEvent \(Query.self)")
  return "eventcore.request.\(Query.subject).\(subjectWord(answerName(answer)))"
}

/// What stands for a type of answers in subjects: types of one name are one.
private func answerName<Answer>(_ answer: Answer.Type) -> String {
  (answer as? any RemoteEvent.Type)?.remoteName ?? String(describing: answer)
}

/// Sends the requests of one type.
private struct RequestOutlet<Query: RemoteEvent>: Sendable {
  private let coding: RemoteCoding<Query>
  private let subject: String
  private let header: HeaderWriter
  private let requests: PendingRequests
  private let central: EventCentral
  private let link: Link

  init(_ type: Query.Type, _ subject: String, _ bridge: NATSBridge, _ requests: PendingRequests) {
    self.subject = subject
    coding = Query.coding
    header = HeaderWriter(Query.self, coding, sender: bridge.sender)
    self.requests = requests
    (central, link) = (bridge.central, bridge.link)
  }

  /// Sends a request. The closure gets the reply, or why there is none, on any thread, once.
  ///
  /// It may wait for the network on a thread of the cooperative pool: the client has no other way to write, but for
  /// connections that an event loop of the user's drives, and a thread of the bridge's own would cost every request one
  /// more that has to be woken, of 6 to 12 us.
  func ask(_ query: Query, _ replied: @escaping @Sendable (Result<Data, any Error>) -> Void) {
    guard let number = requests.begin(replied) else { return }
    do {
      let (line, fields) = (header.line(.queue, .normal, time: wallClock()), central.carriedFields)
      let body = try coding.encode(query)
      link.send(while: { requests.isWaiting(number) }) { send(number, line, body, fields) }
    } catch {
      requests.finish(number, .failure(error))
    }
  }

  private func send(_ number: UInt64, _ line: String, _ body: Data, _ fields: [String: String]) {
    // Not after the time of one that has waited for the first connection.
    guard requests.isWaiting(number) else { return }
    let message = body.withUnsafeBytes {
      makeMessage(subject, line, $0, fields, reply: requests.subject(of: number))
    }
    defer { message.map(SpentMessages.shared.add) }
    let status = message.map { Link.publish($0, link) } ?? NATS_MAX_PAYLOAD
    link.flushSoon()
    do throws(NATSBridgeError) {
      try NATSBridgeError.check(status, "send a request")
    } catch {
      requests.finish(number, .failure(error))
    }
  }
}
