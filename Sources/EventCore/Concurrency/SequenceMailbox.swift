// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The mailbox of a sequence, from which the task that iterates takes events one by one (D1 to D3, anew for each):
/// a listener in a task context whose task is the user's.
///
/// It ends with its last reference, with its source, or by `end()`. What waits then is freed and counted (D10).
///
/// Synchronization: `isDriving`, and the slot of `TypedSequenceMailbox`, belong to the one iterator (`Lease`); the rest
/// is constant or atomic.
@usableFromInline
class SequenceMailbox: @unchecked Sendable {
  let driver = TaskDriver()
  private let context: ExecutionContext
  private let consumer: Consumer
  private let pump: ConsumerPump
  private let registration: ListenerRegistration
  /// Whether newer events replace others by the buffering, and not by the interest.
  private let keepsLatest: Bool
  // Checked accesses would cost each take 13 ns, and the lease excludes others.
  @exclusivity(unchecked) private var isDriving = false
  private let isLeased = Atomic<Bool>(false)

  /// How many events a task takes, and does not hand on, before it lets others run.
  @inlinable static var courtesy: Int { 64 }

  /// The right of one iterator to take. Iterators are not `Sendable`, so that one task at a time uses it.
  @usableFromInline
  final class Lease {
    private let mailbox: SequenceMailbox

    fileprivate init(_ mailbox: SequenceMailbox) {
      self.mailbox = mailbox
    }

    deinit {
      mailbox.endLease()
    }
  }

  /// - Parameters:
  ///   - requester: The mailbox ends with it (D9); nil for none.
  ///   - make: Makes the handler, which puts an event into the slot, and tells the driver if that is for a call.
  @usableFromInline
  init(
    _ source: EventListener, _ requester: AnyObject?, _ buffering: EventBuffering, _ type: EventTypeActions,
    _ make: (ListenerRegistration, TaskDriver) -> EventHandler
  ) {
    keepsLatest = buffering == .latest
    let capacity = buffering.capacity
    capacity?.check(for: "EventSequence")
    context = source.contexts.task(driver, isUsers: true, capacity: capacity)
    consumer = context.consumer
    // Not nil: the context of a task.
    pump = consumer.pump.unsafelyUnwrapped
    registration = source.add(in: context, requester, type) { [driver] in make($0, driver) }
  }

  deinit {
    registration.remove()
  }

  /// Nil if the mailbox has ended, and another iterator has not noticed it yet.
  @usableFromInline
  final func lease() -> Lease? {
    // Acquiring, pairs with `endLease`: what the last iterator has left.
    if !isLeased.exchange(true, ordering: .acquiring) { return Lease(self) }
    require(
      !isActive,
      """
      An EventSequence has one iterator at a time, and this one has another, perhaps in another task: give each \
      loop a sequence of its own by events(on:), and each gets every event.
      """)
    return nil
  }

  private func endLease() {
    rest()
    // A drain may have found it in use, and left its end to this iterator, which takes no more.
    consumer.endIfDrained()
    isLeased.store(false, ordering: .releasing)
  }

  /// Lets others end the mailbox while the task that iterates does something long: what waits is freed at once then,
  /// and not before the next take. Its iterator only.
  @usableFromInline
  final func rest() {
    guard isDriving else { return }
    _ = takeCarried()
    pump.endTakes()
    isDriving = false
  }

  /// Delivers one event, which the handler puts into the slot or skips. False if none is left, or if the mailbox
  /// has ended. Its iterator only.
  @usableFromInline
  final func deliverNext() -> Bool {
    // Nil while another thread frees a removed handler: a job follows.
    if pump.take(consumer, &isDriving) == .more { return true }
    // That of the last event, which nobody has asked for. A task may wait for long.
    _ = takeCarried()
    return false
  }

  /// Waits until there may be something to deliver. False if the mailbox has ended; a task that is cancelled ends it.
  @usableFromInline
  final func wait() async -> Bool {
    await withTaskCancellationHandler {
      await driver.nextJob()
    } onCancel: {
      end()
    }
  }

  /// Ends the mailbox. True for the first call. Any thread.
  @usableFromInline
  @discardableResult
  final func end() -> Bool {
    // After a drain has ended the consumer, its end alone does not keep calls from beginning.
    defer { consumer.registry.close() }
    return registration.remove()
  }

  /// Whether a take is inside the interest's filter. After `end()`, and then the fence of its consumer; any thread.
  final var isTaking: Bool { registration.isCallRunning }
  final var consumerToFence: Consumer? { registration.consumerToFence }

  /// Returns when no take is inside the interest's filter any more. After `end()`; any thread.
  final func waitUntilTaken() { consumer.waitUntilDone(registration.call.handler) }
  final func untilTaken() async { await consumer.untilDone(registration.call.handler) }

  /// False once it has ended. Any thread.
  final var isActive: Bool { registration.isActive && context.isUsable }

  /// The same, but true also while what waits is handled before the end of the source. Any thread.
  final var delivers: Bool { registration.isActive && context.delivers }

  /// The same also after that, until the source has ended, without a look at the requester, which runs no user code. Any
  /// thread.
  final var isOpen: Bool { context.delivers }

  /// Whether calls for events that were taken are still to begin, as they do even after a drain. Any thread.
  final var hasCallsToBegin: Bool { consumer.hasCalls && isOpen && isWanted }

  /// Whether its requester lives, or it has none. It may release the requester, which runs user code. Any thread.
  final var isWanted: Bool { registration.requester?.isGone != true }

  /// What the central carries with its events. Any thread.
  final var carrier: EventCarrier? { consumer.basis.carrier }

  /// The value that came with the event that was taken last, once: it is let go of here, and otherwise with the next
  /// step, or by `rest`. The iterator only.
  package final func takeCarried() -> (any EventCarrier.Value)? { consumer.hooks.taken?.value.take() }

  /// How many events wait. Any thread.
  @usableFromInline
  final var waitingCount: Int { context.waitingCount }

  /// How many events the buffering has lost: its bound refused or dropped them, or newer ones replaced them.
  final var lostCount: UInt64 {
    let bound = consumer.mailboxStatistics
    return (keepsLatest ? registration.supersededCount : 0) + bound.refused + bound.dropped
  }

  /// How many events the interest has skipped.
  final var skippedCount: UInt64 { keepsLatest ? registration.rejectedCount : registration.skippedCount }
}

/// The mailbox of a sequence of one type of events.
@usableFromInline
final class TypedSequenceMailbox<E: Eventable>: SequenceMailbox, @unchecked Sendable {
  /// The event that was delivered last, until `take` moves it out.
  @usableFromInline let slot: UnsafeMutablePointer<E?>

  /// - Parameter makesCalls: Whether what is taken is for the calls of an `async` handler.
  @inlinable
  init(
    _ source: EventListener, _ requester: AnyObject?, _ buffering: EventBuffering, _ interest: HandlerInterest<E>,
    makesCalls: Bool = false
  ) {
    let slot = UnsafeMutablePointer<E?>.allocate(capacity: 1)
    slot.initialize(to: nil)
    self.slot = slot
    super.init(source, requester, buffering, eventTypeActions(E.self)) { registration, driver in
      guard makesCalls else { return registration.handler(HandlerCallback { slot.pointee = $0 }, interest) }
      let callback = HandlerCallback<E> {
        slot.pointee = $0
        // Before the consumer counts the event.
        driver.willCall()
      }
      return registration.handler(callback, interest)
    }
  }

  deinit {
    slot.deinitialize(count: 1)
    slot.deallocate()
  }

  /// The next event, if one waits. The task that iterates only.
  ///
  /// It passes at most `courtesy` events that the interest skips, so that a stream of them neither hides that the task
  /// was cancelled nor keeps its thread from others.
  @inlinable
  func take() -> SequenceTake<E> {
    for _ in 0..<SequenceMailbox.courtesy {
      guard deliverNext() else { return .nothing }
      if let event = slot.pointee.take() { return .event(event) }
    }
    return .skippedMany
  }
}

/// What `TypedSequenceMailbox.take` has found.
@usableFromInline
enum SequenceTake<E> {
  case event(E)
  /// The interest has skipped many events, and more may wait: the task looks whether it has to end, and yields.
  case skippedMany
  /// Nothing waits, or the mailbox has ended.
  case nothing
}
