// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@_spi(Bridge) import EventCore
import Foundation
import Synchronization

extension NATSBridge {
  /// Passes what no coordinator on this machine stops to a parent coordinator on another one. It sets
  /// `EventCoordinator.unhandledEvents` of the top coordinator.
  ///
  /// ```swift
  /// try bridge.forwardUnhandled(of: hall, to: "plant", carrying: [AlarmEvents.self]) { event, answer in
  ///   if case .success(.handled) = answer { return }
  ///   print("nobody takes care of \(event): \(answer)")
  /// }
  /// ```
  ///
  /// An emission does not wait for the network, unless the outbox is full and its policy is `.block`
  /// (``Options/outbox``): it returns `.unhandled`, since nobody here has stopped the event. The answer comes later:
  /// `.handled` or `.unhandled`, as the emission on the other machine ended, or on further ones to which that one passes
  /// it; `EventWaitError.nobodyAnswers` if no machine is the parent, or its coordinator is gone;
  /// `EventWaitError.timedOut(_:)` if the answer did not come in time, when the event may have been handled
  /// nevertheless; ``NATSBridgeError`` otherwise, with ``NATSBridgeError/Reason/answerFailed`` if the parent cannot
  /// read the event or is too busy, and for what it has met beyond itself. An event does not come twice to one parent:
  /// what it would bring back there is `.unhandled`. The parent is on another bridge: what a bridge sends does not come
  /// back to it, so that nobody answers.
  ///
  /// - Parameters:
  ///   - coordinator: The one at the top. Not retained: the registration ends with it, and the last answer.
  ///   - parent: The name of the parent, which ``answerUnhandled(by:as:carrying:executeOn:isolation:)`` has there: words
  ///     that are separated by dots.
  ///   - types: Which events to pass.
  ///   - limit: How long to wait for an answer, also while the server is away, by the clock of this machine
  ///     (`ContinuousClock`), whatever clock the central has.
  ///   - executeOn: The place where the coordinators are used, and where answers come; as for
  ///     `EventCoordinator.emitEvents(of:from:executeOn:isolation:)`.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  ///   - answered: Gets each event with what became of it, once, unless the coordinator is gone, or the central was
  ///     drained, which ends the place: drain the bridge first. The coordinator retains it.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed.
  ///
  /// **Order**: events leave in the order in which they were emitted, through the outbox (``Options/outbox``).
  @discardableResult
  public func forwardUnhandled(
    of coordinator: EventCoordinator, to parent: String, carrying types: [any (CoordinateEvents & RemoteEvent).Type],
    within limit: Duration = .seconds(5), executeOn: ExecuteEventOn = .requesterThread,
    isolation: isolated (any Actor)? = #isolation,
    answered: @escaping (_ event: any CoordinateEvents, _ answer: Result<EventEmission, any Error>) -> Void = { _, _ in }
  ) throws(NATSBridgeError) -> RemoteRegistration {
    checkSubject(parent, of: "a parent coordinator")
    let place = CoordinatorPlace(
      coordinator, central, executeOn, isolation, for: "forwardUnhandled(of:to:carrying:)", answered)
    let requests = PendingRequests(within: limit, options)
    let replies = try receive(requests.pattern, nil, isForReplies: true) { requests.takeReply($0) }
    let entries = types.map { ForwardEntry($0, to: parent, requests, place, self) }
    let registration = keep(RemoteRegistration([{ replies.remove() }, { requests.end() }], of: self))
    place.whenOver { registration.remove() }
    let top = ObjectIdentifier(coordinator)
    coordinator.unhandledEvents = { event in
      if registration.isActive {
        for entry in entries where entry.forward(event, top) { break }
      }
      return .pass
    }
    return registration
  }

  /// Makes a coordinator the parent of coordinators on other machines: it is asked for what these pass on
  /// (``forwardUnhandled(of:to:carrying:within:executeOn:isolation:answered:)``), then those above it, and the answer
  /// goes back.
  ///
  /// - Parameters:
  ///   - coordinator: Not retained. The first child that passes on an event when it is gone hears that nobody is there,
  ///     and the registration ends.
  ///   - name: Under which children find it. Of all machines with a coordinator of that name one gets each event.
  ///   - types: Which events to take.
  ///   - executeOn: The place where the coordinators are used; as for
  ///     `EventCoordinator.emitEvents(of:from:executeOn:isolation:)`.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  /// - Returns: Ends it. It stays if it is released.
  /// - Throws: If the bridge was closed.
  ///
  /// **Order**: for each child that in which it sent them, by priority (D1, D2).
  @discardableResult
  public func answerUnhandled(
    by coordinator: EventCoordinator, as name: String, carrying types: [any (CoordinateEvents & RemoteEvent).Type],
    executeOn: ExecuteEventOn = .requesterThread, isolation: isolated (any Actor)? = #isolation
  ) throws(NATSBridgeError) -> RemoteRegistration {
    checkSubject(name, of: "a parent coordinator")
    let place = CoordinatorPlace(
      coordinator, central, executeOn, isolation, for: "answerUnhandled(by:as:carrying:)", { _, _ in })
    var parts: [RemoteRegistration] = []
    do throws(NATSBridgeError) {
      for type in types { parts.append(try answerUnhandled(type, name, place)) }
    } catch {
      for part in parts { part.remove() }
      throw error
    }
    let all = parts
    let registration = keep(RemoteRegistration(all.map { part in { part.remove() } }, of: self))
    place.whenOver {
      // Who has sent something here already hears that nobody is there.
      all.drain(until: ContinuousClock.Instant(after: .seconds(10)))
      registration.remove()
    }
    return registration
  }

  private func answerUnhandled<E: CoordinateEvents & RemoteEvent>(
    _ type: E.Type, _ name: String, _ place: CoordinatorPlace
  ) throws(NATSBridgeError) -> RemoteRegistration {
    let reader = Reader(E.self, self)
    let (link, central, counters) = (link, central, counters)
    return try receive(emissionSubject(E.self, name), "answerers") { message in
      let subject = replySubject(of: message)
      guard subject != nil || natsMsg_GetReply(message) == nil else {
        counters.received.increment()
        return counters.malformed.increment()
      }
      let reply = EmissionReply(link, subject)
      // Its own as well: a central may have the parent and the child.
      guard let (event, origin) = reader.read(message, takesOwn: true) else {
        return reply.give(.failure(NATSBridgeError(.other, "The parent does not know such an event.")))
      }
      // Another machine of that name may have its coordinator still.
      guard place.isHere else {
        place.end()
        return counters.unheard.increment()
      }
      var line: UnsafePointer<CChar>?
      let isFurther = natsMsgHeader_Get(message, Ascent.key, &line) == NATS_OK
      let passed = isFurther ? line.map { String(cString: $0).split(separator: " ").map(String.init) } ?? [] : []
      central.withCarriedFields(fields(of: message)) {
        let isTaken = place.run(origin.priority) { coordinator in
          Ascent(passed + [name]).climb(event, from: coordinator, reply)
        }
        if isTaken { return counters.dispatched.increment() }
        counters.unheard.increment()
        // Or else it has ended meanwhile, and nobody was there.
        if place.isHere { reply.give(.failure(NATSBridgeError(.other, "The parent is too busy."))) }
      }
    }
  }
}

/// As those of requests, of the bridge's own.
private func emissionSubject<E: RemoteEvent>(_ type: E.Type, _ parent: String) -> String {
  checkSubject(E.subject, of: "the RemoteEvent \(E.self)")
  return "eventcore.emission.\(parent).\(E.subject)"
}

/// Where the coordinators of a tree are used: the only place where its coordinator and closure are touched.
private final class CoordinatorPlace: Sendable {
  typealias Answered = (any CoordinateEvents, Result<EventEmission, any Error>) -> Void
  private struct Call: Eventable {
    /// Of several coordinators in a place one takes the call.
    let token: Token
    let body: @Sendable (EventCoordinator) -> Void
  }
  private final class Token: Sendable {}
  private final class Answers: @unchecked Sendable {
    // Used and freed in the place alone: the listener there has the only reference that stays.
    let tell: Answered

    init(_ tell: @escaping Answered) { self.tell = tell }
  }

  private let token = Token()
  private weak let answers: Answers?
  private let handle: any EventListenerHandling
  private let over = Locked<(@Sendable () -> Void)?>(nil)

  init(
    _ coordinator: EventCoordinator, _ central: EventCentral, _ executeOn: ExecuteEventOn,
    _ isolation: isolated (any Actor)?, for caller: String, _ answered: @escaping Answered
  ) {
    let (token, answers) = (token, Answers(answered))
    self.answers = answers
    handle = coordinator.receive(Call.self, from: central, executeOn, isolation, for: caller) { coordinator, call in
      withExtendedLifetime(answers) { if call.token === token { call.body(coordinator) } }
    }
  }

  deinit {
    handle.remove()
    end()
  }

  /// False once the place has found the coordinator gone. Any thread: it does not look at the coordinator, which must
  /// not end outside of its place.
  var isHere: Bool { !handle.hasEnded }

  /// Has a closure called at the end of the place, once. It may wait for the network.
  func whenOver(_ body: @escaping @Sendable () -> Void) { over.withLock { $0 = body } }

  func end() {
    let body = over.withLock { over in
      defer { over = nil }
      return over
    }
    if let body { DispatchQueue.global().async(execute: body) }
  }

  /// A coordinator that is gone is not called, and the closure is freed; then the place ends.
  ///
  /// - Returns: Whether it is under way: the place may be full.
  func run(_ priority: EventPriority, _ body: @escaping @Sendable (EventCoordinator) -> Void) -> Bool {
    let visit = Visit(self)
    let call = Call(token: token) { body($0); withExtendedLifetime(visit) {} }
    return handle.queueInPlace(call, priority: priority)
  }

  /// A call under way. It has the place, which would end the listener.
  private final class Visit: Sendable {
    private let place: CoordinatorPlace

    init(_ place: CoordinatorPlace) { self.place = place }

    deinit { if !place.isHere { place.end() } }
  }

  /// Also in a place that is full, since the answer comes once.
  func tell(_ event: any CoordinateEvents, _ answer: Result<EventEmission, any Error>) {
    let visit = Visit(self)
    // The weak reference is not read here, where it would be the last one for a moment.
    handle.runInPlace { [self] in withExtendedLifetime(visit) { answers?.tell(event, answer) } }
  }
}

/// An event in the outbox. If that ends, refuses or displaces it, or it cannot be sent, who waits hears of it.
private final class Departure: Sendable {
  private let number: UInt64
  private let requests: PendingRequests
  private let link: Link
  // Relaxed, both: who reads them is the last that has the departure.
  private let hasLeftOutbox = Atomic<Bool>(false)
  private let isSent = Atomic<Bool>(false)

  init(_ number: UInt64, _ requests: PendingRequests, _ link: Link) {
    (self.number, self.requests, self.link) = (number, requests, link)
  }

  /// On the bridge's thread.
  func begin(_ send: () -> Bool) {
    hasLeftOutbox.store(true, ordering: .relaxed)
    isSent.store(send(), ordering: .relaxed)
  }

  deinit {
    guard !isSent.load(ordering: .relaxed) else { return }
    let why =
      hasLeftOutbox.load(ordering: .relaxed)
      ? "The event could not be sent: its coding threw an error, or it is longer than the server takes."
      : "The event could not be sent: the outbox of the bridge is full. Raise its Options.outbox, or emit less."
    // A drain still sends what has left the outbox, until its time is over: what fails then fails for its own cause.
    let isClosed = hasLeftOutbox.load(ordering: .relaxed) ? link.isOver : link.endsOrHasEnded
    requests.finish(number, .failure(isClosed ? .closed : NATSBridgeError(.other, why)))
  }
}

/// What a top coordinator passes on of one type.
private struct ForwardEntry: Sendable {
  /// False if the event is of another type.
  let forward: @Sendable (_ event: any CoordinateEvents, _ top: ObjectIdentifier) -> Bool

  init<E: CoordinateEvents & RemoteEvent>(
    _ type: E.Type, to parent: String, _ requests: PendingRequests, _ place: CoordinatorPlace, _ bridge: NATSBridge
  ) {
    let subject = emissionSubject(E.self, parent)
    let outlet = Outlet(E.self, bridge)
    let (central, thread, link) = (bridge.central, bridge.thread, bridge.link)
    forward = { event, top in
      guard let event = event as? E else { return false }
      let passed = Ascent.current?.passed ?? []
      let time = central.now
      let send: Ascent.Onward = { reply in
        let done = { @Sendable (answer: Result<EventEmission, any Error>) in
          reply?.give(answer)
          place.tell(event, answer)
        }
        // By bytes, as the server tells subjects apart.
        guard !passed.contains(where: { $0.utf8.elementsEqual(parent.utf8) }) else { return done(.success(.unhandled)) }
        guard
          let number = requests.begin({ reply in done(Result { try EventEmission(reply: reply.get()) }) })
        else { return }
        let departure = Departure(number, requests, link)
        let posted = Posted {
          departure.begin {
            outlet.send(event, under: subject, replyTo: requests.subject(of: number), .queue, .normal, time) {
              // Not after the child has heard that it is too late, as when the server comes back.
              guard requests.isWaiting(number) else { return NATS_DRAINING }
              if !passed.isEmpty { natsMsgHeader_Set($0, Ascent.key, passed.joined(separator: " ")) }
              return Link.publish($0, $1)
            }
          }
          link.flushSoon()
        }
        thread.queueEvent(posted)
      }
      if Ascent.current?.hold(E.self, at: top, send) != true { send(nil) }
      return true
    }
  }
}
