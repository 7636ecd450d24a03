// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  /// The shared mailbox of the C core, owned by this object.
  final class LockFreeSharedMailbox: SharedMailboxCore, LockFreeMailboxBase, @unchecked Sendable {
    // The pointer is constant, and every function of the mailbox may be called from any thread.
    private let mailbox: OpaquePointer

    init(_ capacity: EventMailboxCapacity) {
      var options = evc_mailbox_options()
      options.bound(capacity)
      var made: OpaquePointer?
      requireCore(
        evc_shared_mailbox_create_bounded(options.capacity, options.overflow, options.block_ns, &made),
        "make a shared mailbox")
      mailbox = made!
    }

    deinit {
      evc_shared_mailbox_release(mailbox)
    }

    func addSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
      add(entry, by: evc_shared_mailbox_add_subscription)
    }

    func addLatestSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
      guard let keys = entry.keys else {
        return add(entry, by: evc_shared_mailbox_add_latest_subscription)
      }
      // The entry, which the subscription retains, retains the keys.
      return add(entry) { mailbox, options, made in
        withUnsafePointer(to: evc_conflation(keys)) {
          evc_shared_mailbox_add_conflated_subscription(mailbox, options, $0, made)
        }
      }
    }

    private func add(
      _ entry: SharedMailbox.Entry,
      by create: (
        OpaquePointer, UnsafePointer<evc_shared_subscription_options>,
        UnsafeMutablePointer<OpaquePointer?>
      ) -> evc_status
    ) -> Subscription {
      var options = evc_shared_subscription_options()
      options.size = MemoryLayout.size(ofValue: options)
      // Retained until the core frees the subscription, with the mailbox at the latest. The core
      // passes it on as it is, with the worker's context and the envelope that it took: none of
      // them is ever nil.
      options.context = Unmanaged.passRetained(entry).toOpaque()
      options.deliver = { worker, context, payload, envelope, owned in
        Unmanaged<Consumer>.fromOpaque(worker.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
          consumer in
          Unmanaged<SharedMailbox.Entry>.fromOpaque(context.unsafelyUnwrapped)
            ._withUnsafeGuaranteedRef {
              consumer.deliverShared(
                $0, payload.unsafelyUnwrapped,
                UnsafeMutableRawPointer(envelope.unsafelyUnwrapped), owned: owned)
            }
        }
      }
      if entry.drop != nil {
        options.drop = { context, payload in
          Unmanaged<SharedMailbox.Entry>.fromOpaque(context!)
            ._withUnsafeGuaranteedRef { $0.drop!(payload!) }
        }
      }
      options.finalize = { Unmanaged<SharedMailbox.Entry>.fromOpaque($0!).release() }
      var made: OpaquePointer?
      requireCore(create(mailbox, &options, &made), "add a subscription")
      return Subscription(pointer: UnsafeMutableRawPointer(made!))
    }

    func makeWorker(_ consumer: Consumer, _ strategy: EventWaitStrategy) -> any MailboxCore {
      LockFreeMailbox(consumer, strategy, workerOf: mailbox)
    }

    func close() { evc_shared_mailbox_close(mailbox) }
    func closeWhenEmpty() { evc_shared_mailbox_close_when_empty(mailbox) }

    func dropAll() { evc_shared_mailbox_drop(mailbox) }

    func depths() -> [Int] { laneCounts { evc_shared_mailbox_depths(mailbox, $0) } }

    var statistics: evc_mailbox_statistics {
      var statistics = evc_mailbox_statistics()
      evc_shared_mailbox_read_statistics(mailbox, &statistics)
      return statistics
    }
  }
#endif
