// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
@_spi(Bridge) import EventCore
import Foundation

/// Connects a central to those of other machines, over a server of NATS.
///
/// ```swift
/// let bridge = try await NATSBridge(.url("nats://localhost:4222"), on: world)
/// bridge.publish(TemperatureEvent.self)              // what is dispatched here goes out
/// try bridge.subscribe(TemperatureEvent.self)        // what arrives is dispatched here
/// try bridge.subscribe(Job.self, group: "workers")   // each job to one machine of the group
/// ```
///
/// What arrives is dispatched with the priority and the method of the sender, to every receiver but bridges: it never
/// goes out again, neither through this bridge nor through another one of the same central.
///
/// What is published waits in the bridge's outbox, the bounded mailbox of a thread of its own, while the server is away
/// or slow (``Options/outbox``). <doc:BeyondOneMachine> says what may be lost or doubled.
///
/// **Threads**: any, for every member. What arrives is dispatched on threads of the client, one for each subscription.
/// The client has the connection to itself while it writes to a network that takes nothing, for up to three heartbeats
/// (``Options/heartbeat``), and while it attempts to connect, for up to ``Options/connectTimeout``. Meanwhile whatever
/// makes or ends a subscription blocks its caller: `subscribe`, `mount`, `forwardRequests` and their like,
/// ``RemoteRegistration/remove()``, ``close()``.
///
/// **Ownership**: the bridge ends with its last reference, as by ``close()``. Registrations end with the bridge; their
/// handles need not be kept.
public final class NATSBridge: Sendable {
  /// How a bridge goes about its work.
  public struct Options: Sendable {
    /// The name that the server shows, and the ``NATSStatus/bridge`` of status events.
    public var name = "EventCore"
    /// How many events may wait to be sent, and what becomes of more: each is counted in ``Counts/outbox``. With
    /// `.block`, a dispatch waits for the network.
    public var outbox = EventMailboxCapacity.bounded(65_536, whenFull: .refuse)
    /// How many messages of a subscription may wait to be dispatched, from 1 up to 2,000,000, and 1,024 times as many
    /// bytes, or one message of ``longestMessage``; the client drops more (``Counts/overrun``). Of a stream at least
    /// ``DurableOptions/inFlight`` may wait, of a megabyte each, up to 1.9 GiB in all.
    public var inbox = 65_536
    /// The longest message to take, or event of a batch, in bytes, at least 0; longer ones are counted as
    /// ``Counts/tooLong``. A longer reply is a failure (``NATSBridgeError/Reason/answerFailed``). Headers do not count:
    /// the server's `max_payload` bounds them.
    public var longestMessage = 1 << 20
    /// Whether to write each message at once. Otherwise the client gathers what comes within a millisecond, which is
    /// the faster the more events there are, and the slower for a single one. Requests and answers do not wait for it,
    /// and those of a bridge that sends at once save a thread: an answerer writes its answer itself, and waits if the
    /// network takes nothing, for up to three heartbeats.
    public var sendsAtOnce = false
    /// How to come back after the connection broke.
    public var reconnecting = Reconnecting()
    /// Whether a bridge can be made before its server is there; otherwise the initialiser throws. It also waits while
    /// something else is at the address, or a server without the right TLS, of which a ``NATSStatus/Change/fault(_:)``
    /// tells; it ends if it is refused.
    public var waitsForServer = false
    /// How long one attempt to connect may take.
    public var connectTimeout = Duration.seconds(2)
    /// How often to look whether a silent server is still there. It counts as gone after three to four times of that.
    public var heartbeat = Duration.seconds(5)

    public init() {}

    fileprivate func check() {
      guard inbox > 0 else {
        fatalError(
          """
          Options.inbox is how many messages of a subscription may wait, at least 1, and this one is \(inbox): \
          set it to 1 or more.
          """)
      }
      guard longestMessage >= 0 else {
        fatalError(
          """
          Options.longestMessage is a number of bytes, at least 0, and this one is \(longestMessage), with which a \
          bridge would take nothing: set it to the longest message that you expect.
          """)
      }
    }
  }

  /// The times before attempts to connect again: each twice as long as the one before, minus up to a quarter by chance.
  /// Of several servers the others are tried at once, before the first of these times. There is no last attempt.
  public struct Reconnecting: Sendable {
    /// The time before the first attempt, if there is one server.
    public var first: Duration
    public var longest: Duration

    public init(first: Duration = .milliseconds(50), longest: Duration = .seconds(5)) {
      (self.first, self.longest) = (first, longest)
    }
  }

  /// Where events are dispatched.
  public let central: EventCentral
  let options: Options
  let link: Link
  let counters = Counters()
  /// Its mailbox is the outbox.
  let thread: EventThread
  let batch: OpenBatch
  /// By which bridges of the central know its events.
  let sender: String
  /// The types that it sends.
  let published = Locked<Set<ObjectIdentifier>>([])
  private let registrations = Locked<(all: [ObjectIdentifier: RemoteRegistration], areOver: Bool)>(([:], false))
  private let draining = Locked<Task<Bool, Never>?>(nil)

  /// Connects.
  ///
  /// - Parameters:
  ///   - server: Where, and as whom.
  ///   - central: Whose events to exchange. One with threads: a deterministic one would wait for the network.
  ///   - options: See ``Options``.
  /// - Throws: If no server is there, unless ``Options/waitsForServer``, or it does not let the client in.
  public init(
    _ server: NATSServer, on central: EventCentral = .shared, options: Options = Options()
  ) async throws(NATSBridgeError) {
    options.check()
    let link = Link(central, options)
    // It blocks until there is a connection, so not on a thread of the cooperative pool.
    let result = await blocking { Result { () throws(NATSBridgeError) in try link.connect(to: server, options) } }
    try result.get()
    self.central = central
    self.options = options
    self.link = link
    batch = OpenBatch(link, counters)
    sender = Sender.name(of: central)
    thread = EventThread(on: central, mailbox: options.outbox, name: "NATSBridge")
    thread.addEventCallback { (posted: Posted) in posted.send() }
  }

  deinit {
    end()
    thread.cancel()
  }

  /// Whether the connection is there at the moment.
  public var isConnected: Bool { link.isConnected }

  /// What became of the events so far.
  public var counts: Counts {
    let overrun = registrations.withLock { registrations in
      registrations.all.values.reduce(counters.overrun.load(ordering: .relaxed)) { $0 + $1.overrun }
    }
    var counts = counters.counts(thread.mailboxStatistics, overrun: overrun)
    // Freed at its end, or skipped, since the callback that would have sent them had ended.
    let statistics = thread.statistics
    counts.unsent += Int(statistics.cancelled + statistics.skipped)
    if link.hasEnded { counts.unsent += batch.count } else { counts.outbox.waiting += batch.count }
    return counts
  }

  /// Ends the bridge: dispatches what has come, waits for the handlers of durable events, sends what waits, and closes
  /// the connection.
  ///
  /// - Parameter limit: How long it may take. What is not sent by then is counted as ``Counts/unsent``.
  /// - Returns: Whether everything that waited was sent, and the server has read it. False as well while somebody
  ///   keeps a durable event (``NATSDelivery``), which then comes again; if what waited was of a type that is not
  ///   published any more, or of a node that is not mounted any more, or has left its mounted one; or if the connection
  ///   broke meanwhile and what it had taken may be lost, unless that is stored. What was under way when a connection
  ///   broke earlier is not known, and what was ``Counts/unsent`` before does not count. Neither does what can never be
  ///   sent, of which ``Counts/unencodable`` and ``Counts/tooLarge`` tell, nor what the server has read and does not
  ///   let through: what this client may not publish.
  ///
  /// Of several calls the first one drains, within its limit; the others wait for it, and return the same.
  ///
  /// What is published after the call has begun, or arrives then, is not promised; a registration that is made after
  /// the end has ended itself. Handlers of events that are not durable may still be running: for these drain the
  /// registrations first (``RemoteRegistration/drain(within:)``), then their receivers, and then the bridge.
  ///
  /// While the client has the connection to itself (``NATSBridge``), or a coding is at work, this returns false some two
  /// seconds after the limit; connection and counts come to their end when that gives up, or returns.
  @discardableResult
  public func drain(within limit: Duration = .seconds(30)) async -> Bool {
    let task = draining.withLock { task in
      let one = task ?? Task { await self.drainOrLeave(limit) }
      task = one
      return one
    }
    return await task.value
  }

  private func drainOrLeave(_ limit: Duration) async -> Bool {
    let deadline = ContinuousClock.Instant(after: limit)
    // The client takes half a second to close a connection whose server is silent.
    let isDrained = await resultOrNil(about: deadline, grace: .milliseconds(2000)) { [self] in
      await drain(until: deadline)
    } late: { [link, thread] in
      // Nothing is sent from now on, also while the drain waits for the client's lock, before it sets the limit itself.
      link.setLimit(deadline)
      // Or else it would encode all that waits, and then not send it.
      thread.cancel()
    }
    return isDrained ?? false
  }

  private func drain(until deadline: ContinuousClock.Instant) async -> Bool {
    // What was too late before is not under way any more.
    let unsent = counts.unsent
    let all = registrations.withLock { Array($0.all.values) }
    let (generation, areHandled) = await blocking { [link] in
      // First: with the limit the drain begins to end what waits, and a break of the connection from here on counts.
      let generation = link.generation
      link.setLimit(deadline)
      all.filter { !$0.isForReplies }.drain(until: deadline)
      // Before the outbox ends: what their handlers dispatch goes out.
      let areHandled = link.finishDeliveries(until: deadline)
      // Now: these handlers may have waited for replies.
      all.filter(\.isForReplies).drain(until: deadline)
      return (generation, areHandled)
    }
    let hasHandledAll = await thread.drain()
    await blocking { [batch, link] in
      // Of events that waited, the last may have lost their callback.
      batch.send()
      link.finishReplies()
    }
    var isRead = false
    while !isRead, await blocking({ [link] in link.awaitConnection() }) {
      isRead = await blocking { [link] in link.flush(within: deadline.milliseconds()) == NATS_OK }
      // It has broken, which the link is about to know.
      if !isRead { await blocking { [link] in link.awaitChange(within: .milliseconds(10)) } }
    }
    let isLost = await blocking { [link] in link.mayHaveLost(since: generation) }
    await blocking { [self] in end() }
    return areHandled && hasHandledAll && isRead && !isLost && counts.unsent == unsent
  }

  /// Ends the bridge at once. What waits in the outbox is lost. What the client was given before it still writes, if
  /// the network takes it; whether the server reads it is not known.
  ///
  /// It ends when its last reference goes, too.
  ///
  /// **Threads**: any. It blocks while the client has the connection to itself (``NATSBridge``), and so does the
  /// release of the last reference.
  public func close() {
    end()
    thread.cancel()
  }

  private func end() {
    let last = registrations.withLock { registrations in
      registrations.areOver = true
      return Array(registrations.all.values)
    }
    for registration in last { registration.remove() }
    link.close()
  }

  /// Keeps a registration until it or the bridge ends. If that was closed, the registration ends at once.
  func keep(_ registration: RemoteRegistration) -> RemoteRegistration {
    let isOver = registrations.withLock { registrations in
      registrations.all[ObjectIdentifier(registration)] = registration
      return registrations.areOver
    }
    if isOver { registration.remove() }
    return registration
  }

  func forget(_ registration: RemoteRegistration) {
    registrations.withLock { registrations in
      // With the lock held, so that it counts once at any time.
      if let last = registrations.all.removeValue(forKey: ObjectIdentifier(registration)) {
        counters.overrun.add(last.overrun)
      }
    }
  }
}

/// What goes out under a subject of its own, on its way through the outbox.
struct Posted: Eventable {
  /// On the bridge's thread.
  let send: @Sendable () -> Void
}

/// Runs what blocks on a thread of its own, and not on one of the few of the cooperative pool.
func blocking<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
  // Not through the continuation, whose ways with results the thread sanitizer does not understand.
  let result = Locked<Result?>(nil)
  await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
    Thread.detachNewThread {
      let value = body()
      // With the lock held, which the task takes next: so it shows that this thread is done with the task's frame.
      result.withLock {
        $0 = value
        continuation.resume()
      }
    }
  }
  // Written before the continuation was resumed.
  return result.withLock { $0! }
}

/// Runs what ends at a deadline, unless the client has its lock for longer, and leaves it to itself then: nil if it has
/// no result some time after the deadline.
///
/// - Parameter late: Is called at the deadline if there is no result, on a thread that may block.
func resultOrNil<Result: Sendable>(
  about deadline: ContinuousClock.Instant, grace: DispatchTimeInterval = .milliseconds(500),
  _ body: @escaping @Sendable () async -> Result, late: @escaping @Sendable () -> Void = {}
) async -> Result? {
  // Not a semaphore, which on Linux waits by the wall clock.
  let (result, isOver) = (Locked<Result?>(nil), DispatchGroup())
  isOver.enter()
  Task {
    let value = await body()
    result.withLock { $0 = value }
    isOver.leave()
  }
  let end = DispatchTime.now() + .milliseconds(Int(deadline.milliseconds()))
  await blocking {
    guard isOver.wait(timeout: end) == .timedOut else { return }
    late()
    _ = isOver.wait(timeout: end + grace)
  }
  return result.withLock { $0 }
}

/// Names the centrals of all machines.
enum Sender {
  private static let process = UInt64.random(in: .min ... .max)

  static func name(of central: EventCentral) -> String {
    // A central that ended may leave its address to another one, which then is not told apart from it: nothing of the
    // former comes any more.
    String(process ^ UInt64(UInt(bitPattern: ObjectIdentifier(central))), radix: 16)
  }
}
