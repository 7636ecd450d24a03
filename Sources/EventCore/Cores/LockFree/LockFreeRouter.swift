// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  /// The router of the C core, owned by this object.
  final class LockFreeRouter: RouterCore, @unchecked Sendable {
    // The pointer is constant, and every function of the router may be called from any thread.
    let router: OpaquePointer
    /// Kept for the C router, which reads it during a dispatch.
    private let clock: CentralClock?
    /// Kept for the C router likewise; nil if there never was one.
    private let observer = Guarded<Instruments?>(nil)

    init(_ clock: CentralClock?) {
      self.clock = clock
      var made: OpaquePointer?
      requireCore(evc_router_create(&made), "make a router")
      router = made!
      guard let clock else { return }
      var table = clock.table
      requireCore(evc_router_set_clock(router, &table), "give a router a clock")
    }

    deinit {
      // No other reference is left, so that no other call runs or follows.
      evc_router_destroy(router)
    }

    func beginOne(key: UInt, lane: UInt8, size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
      evc_dispatch_begin_one(router, UInt64(key), evc_lane(rawValue: evc_lane.RawValue(lane)), size, alignment)
    }

    func commitOne(_ payload: UnsafeMutableRawPointer) -> Int { Int(evc_dispatch_commit_one(payload)) }

    func begin(
      key: UInt, lane: UInt8, size: Int, alignment: Int, events: Int, _ state: inout DispatchState
    ) {
      let status = withDispatch(&state) {
        evc_dispatch_begin(
          router, UInt64(key), evc_lane(rawValue: evc_lane.RawValue(lane)), size, alignment,
          UInt32(truncatingIfNeeded: events), $0)
      }
      requireCore(status, "dispatch an event")
    }

    func beginBatch(
      events: Int, key: UInt, lane: UInt8, size: Int, alignment: Int, _ state: inout DispatchState
    ) {
      let status = withDispatch(&state) {
        evc_dispatch_begin_batch(
          router, UInt64(key), evc_lane(rawValue: evc_lane.RawValue(lane)), size, alignment,
          UInt32(truncatingIfNeeded: events), $0)
      }
      requireCore(status, "dispatch events")
    }

    func skip(_ subscription: Subscription, size: Int, _ state: inout DispatchState) {
      _ = withDispatch(&state) { evc_dispatch_skip($0, OpaquePointer(subscription.pointer)) }
    }

    func commit(_ state: inout DispatchState) -> Int {
      Int(withDispatch(&state) { evc_dispatch_commit($0) })
    }

    func commit(_ state: inout DispatchState, note: (Subscription, EventDispatchOutcome) -> Void) {
      typealias Note = (Subscription, EventDispatchOutcome) -> Void
      withoutActuallyEscaping(note) { note in
        withUnsafePointer(to: note) { note in
          _ = withDispatch(&state) {
            evc_dispatch_commit_each(
              $0,
              { context, subscription, counts in
                // The core passes the context on as it is, and neither of the others is nil.
                let note = context.unsafelyUnwrapped.assumingMemoryBound(to: Note.self)
                note.pointee(
                  Subscription(pointer: UnsafeMutableRawPointer(subscription.unsafelyUnwrapped)),
                  EventDispatchOutcome(counts.unsafelyUnwrapped.pointee))
              }, UnsafeMutableRawPointer(mutating: note))
          }
        }
      }
    }

    func subscribe(
      _ key: UInt, _ subscription: Subscription, ordinal: Int, generation: UInt32, timed: Bool,
      raising other: RaisedSubscription?
    ) {
      requireCore(
        evc_router_subscribe_raising(
          router, UInt64(key), OpaquePointer(subscription.pointer), generation, timed,
          other.map { OpaquePointer($0.subscription.pointer) }, other?.generation ?? 0),
        "subscribe to an event type")
    }

    func unsubscribe(_ key: UInt, _ subscription: Subscription) {
      let status = evc_router_unsubscribe(router, UInt64(key), OpaquePointer(subscription.pointer))
      if status != EVC_NOT_FOUND { requireCore(status, "unsubscribe from an event type") }
    }

    func observe(by instruments: Instruments?) {
      guard let instruments else {
        return requireCore(evc_router_set_observer(router, nil), "end the observation of a router")
      }
      // Kept as long as the router: a dispatch may be about to tell it. A central has one.
      observer.withLock { $0 = instruments }
      var table = evc_observer(
        context: Unmanaged.passUnretained(instruments).toOpaque(),
        note: { context, key, events, isTimed, note in
          let found = Unmanaged<Instruments>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            $0.note(UInt(key), Int(events), isTimed: isTimed)
          }
          note.unsafelyUnwrapped.pointee = evc_note(
            time: found.time, tally: found.tally?.assumingMemoryBound(to: evc_tally.self), marks: found.isMeasured)
        })
      requireCore(evc_router_set_observer(router, &table), "observe a router")
    }

    @inline(__always)
    private func withDispatch<R>(
      _ state: inout DispatchState, _ body: (UnsafeMutablePointer<evc_dispatch>) -> R
    ) -> R {
      withUnsafeMutableBytes(of: &state) {
        // Same fields, same layout; EnvelopeLayoutTests compares them.
        body($0.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: evc_dispatch.self))
      }
    }
  }

  extension EventDispatchOutcome {
    init(_ counts: evc_dispatch_outcome) {
      accepted = Int(counts.accepted)
      refused = Int(counts.refused)
      dropped = Int(counts.dropped)
      displaced = Int(counts.displaced)
      ended = Int(counts.closed)
    }
  }

  extension CentralClock {
    /// The clock as the core knows it, which does not retain it.
    var table: evc_clock {
      evc_clock(
        context: Unmanaged.passUnretained(self).toOpaque(),
        now: {
          // The core passes the context on as it is.
          Unmanaged<CentralClock>.fromOpaque($0.unsafelyUnwrapped)._withUnsafeGuaranteedRef { $0.now }
        })
    }
  }

  /// Swift has no way on when memory is out, and passes no wrong argument: anything but success
  /// ends the program, with the reason.
  @inline(__always)
  func requireCore(_ status: evc_status, _ what: StaticString) {
    if status != EVC_OK { endWithStatus(status, what) }
  }

  @inline(never)
  private func endWithStatus(_ status: evc_status, _ what: StaticString) -> Never {
    fatalError(
      """
      EventCore goes on only with what its core has done, and that could not \(what): \
      \(String(cString: evc_status_text(status))). If memory is out, give the process more or let it \
      hold less; anything else is a fault of EventCore's: report it with this line.
      """)
  }
#endif
