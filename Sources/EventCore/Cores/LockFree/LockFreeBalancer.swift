// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  /// The balancer of the C core, owned by this object.
  final class LockFreeBalancer: BalancerCore, @unchecked Sendable {
    // The pointer is constant, and every function of the balancer may be called from any thread.
    private let balancer: OpaquePointer
    private let chooser: PoolChooser

    /// What the core keeps until it frees its balancer, which may be long after this object has gone: threads that
    /// remember the balancer as a receiver keep it. Nothing of this is the user's (D9).
    private final class Kept {
      // Not retained. The core uses it, its balancer and its clock only while it holds a receiver: that keeps its
      // `Receiver`, that its `PoolMember`, that the `PoolRoutes`, and they the balancer, which has the chooser.
      unowned(unsafe) let chooser: PoolChooser
      /// A round robin, whose counter the core may use to the end.
      let counting: (any EventPoolBalancing)?
      let drop: ((UnsafeMutableRawPointer) -> Void)?

      init(_ chooser: PoolChooser) {
        self.chooser = chooser
        counting = chooser.turn == nil ? nil : chooser.balancer
        drop = chooser.drop
      }
    }

    init(_ chooser: PoolChooser) {
      self.chooser = chooser
      var options = evc_balancer_options()
      options.size = MemoryLayout.size(ofValue: options)
      // Retained until the core frees the balancer. The core passes it on as it is: never nil, as
      // the choice.
      options.context = Unmanaged.passRetained(Kept(chooser)).toOpaque()
      if let turn = chooser.turn {
        options.turn = UnsafeMutableRawPointer(turn).assumingMemoryBound(to: UInt32.self)
      } else {
        options.choose = { context, choice in
          let choice = choice.unsafelyUnwrapped.pointee
          return Unmanaged<Kept>.fromOpaque(context.unsafelyUnwrapped)
            ._withUnsafeGuaranteedRef {
              UInt32(
                truncatingIfNeeded: $0.chooser.choose(
                  UnsafeMutableRawPointer(choice.envelope), choice.loads.unsafelyUnwrapped,
                  stride: Int(choice.stride), count: Int(choice.count)))
            }
        }
      }
      if chooser.drop != nil {
        options.drop = { context, payload in
          Unmanaged<Kept>.fromOpaque(context!)._withUnsafeGuaranteedRef {
            $0.drop!(payload!)
          }
        }
      }
      options.finalize = { Unmanaged<Kept>.fromOpaque($0!).release() }
      var made: OpaquePointer?
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
