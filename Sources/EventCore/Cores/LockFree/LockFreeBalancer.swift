// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  /// The balancer of the C core, owned by this object.
  final class LockFreeBalancer: BalancerCore, @unchecked Sendable {
    // The pointer is constant, and every function of the balancer may be called from any thread.
    private let balancer: OpaquePointer

    init(_ chooser: PoolChooser) {
      var options = evc_balancer_options()
      options.size = MemoryLayout.size(ofValue: options)
      // Retained until the core frees the balancer. The core passes it on as it is: never nil, as
      // the choice.
      options.context = Unmanaged.passRetained(chooser).toOpaque()
      if let turn = chooser.turn {
        // The chooser, which the core keeps to the end, keeps the round robin and so its counter.
        options.turn = UnsafeMutableRawPointer(turn).assumingMemoryBound(to: UInt32.self)
      } else {
        options.choose = { context, choice in
          let choice = choice.unsafelyUnwrapped.pointee
          return Unmanaged<PoolChooser>.fromOpaque(context.unsafelyUnwrapped)
            ._withUnsafeGuaranteedRef {
              UInt32(
                truncatingIfNeeded: $0.choose(
                  UnsafeMutableRawPointer(choice.envelope), choice.loads.unsafelyUnwrapped,
                  stride: Int(choice.stride), count: Int(choice.count)))
            }
        }
      }
      if chooser.drop != nil {
        options.drop = { context, payload in
          Unmanaged<PoolChooser>.fromOpaque(context!)._withUnsafeGuaranteedRef {
            $0.drop!(payload!)
          }
        }
      }
      options.finalize = { Unmanaged<PoolChooser>.fromOpaque($0!).release() }
      var made: OpaquePointer?
      // The chooser keeps the clock, too.
      if let clock = chooser.clock {
        withUnsafePointer(to: clock.table) {
          options.clock = $0
          requireCore(evc_balancer_create(&options, &made), "make a balancer")
        }
      } else {
        requireCore(evc_balancer_create(&options, &made), "make a balancer")
      }
      balancer = made!
    }

    deinit {
      evc_balancer_release(balancer)
    }

    var subscription: Subscription {
      Subscription(pointer: UnsafeMutableRawPointer(evc_balancer_subscription(balancer)))
    }

    func add(_ subscription: Subscription, generation: UInt32, timed: Bool, load: EventLoad) {
      requireCore(
        evc_balancer_add(
          balancer, OpaquePointer(subscription.pointer), generation, timed,
          load.memory.assumingMemoryBound(to: evc_load.self)),
        "add a thread to a balancer")
    }

    func remove(_ subscription: Subscription) {
      let status = evc_balancer_remove(balancer, OpaquePointer(subscription.pointer))
      if status != EVC_NOT_FOUND {
        requireCore(status, "remove a thread from a balancer")
      }
    }

    func removeAll() { evc_balancer_remove_all(balancer) }

    var refused: UInt64 { evc_balancer_refused(balancer) + evc_balancer_dropped(balancer) }
  }
#endif
