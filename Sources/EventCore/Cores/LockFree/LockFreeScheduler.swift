// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  /// What the C scheduler does with a timer, whose context is a retained handle.
  nonisolated(unsafe) private let timerOperations: UnsafePointer<evc_timer_ops> = {
    // Never changed and never freed. The context is the handle that the timer was added with: never
    // nil.
    let table = UnsafeMutablePointer<evc_timer_ops>.allocate(capacity: 1)
    table.initialize(to: evc_timer_ops())
    table.pointee.fire = { context, deadline in
      let timer = Unmanaged<EventScheduleHandle>.fromOpaque(context.unsafelyUnwrapped)
      let next = timer._withUnsafeGuaranteedRef { $0.fire(deadline) }
      if next <= deadline { timer.release() }
      return next
    }
    table.pointee.drop = {
      Unmanaged<EventScheduleHandle>.fromOpaque($0!).takeRetainedValue().drop()
    }
    table.pointee.takes_late = true
    return UnsafePointer(table)
  }()

  /// The scheduler of the C core, owned by this object.
  final class LockFreeScheduler: SchedulerCore, @unchecked Sendable {
    // Constant. Every function of the C scheduler may be called from any thread.
    private let scheduler: OpaquePointer

    init(isDriven: Bool) {
      var options = evc_scheduler_options()
      options.size = MemoryLayout.size(ofValue: options)
      var made: OpaquePointer?
      // A driven scheduler whose timers may be late reads no clock of its own.
      options.driven = isDriven
      requireCore(evc_scheduler_create(&options, &made), "make a scheduler")
      scheduler = made!
    }

    deinit {
      evc_scheduler_close(scheduler)
      evc_scheduler_release(scheduler)
    }

    func add(_ timer: EventScheduleHandle, at deadline: UInt64) -> Bool {
      let context = Unmanaged.passRetained(timer)
      var id: UInt64 = 0
      let status = evc_scheduler_add(
        scheduler, deadline, timerOperations, context.toOpaque(), &id)
      guard status != EVC_CLOSED else {
        context.release()
        return false
      }
      requireCore(status, "schedule an event")
      timer.ticket = id
      return true
    }

    func withdraw(_ timer: EventScheduleHandle) {
      if evc_scheduler_cancel(scheduler, timer.ticket) == EVC_OK {
        Unmanaged.passUnretained(timer).release()
      }
    }

    func close() { evc_scheduler_close(scheduler) }

    func runDue(at now: UInt64) -> Int { Int(evc_scheduler_run_due(scheduler, now, nil)) }

    var nextDeadline: UInt64 { evc_scheduler_next(scheduler) }
  }
#endif
