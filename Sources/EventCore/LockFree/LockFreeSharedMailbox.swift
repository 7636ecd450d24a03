// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  /// The shared mailbox of the C core, owned by this object.
  func LockFreeSharedMailbox() -> any SharedMailboxCore {
    preconditionFailure("The shared mailbox of the lock-free core is not there yet: use .locking.")
  }
#endif
