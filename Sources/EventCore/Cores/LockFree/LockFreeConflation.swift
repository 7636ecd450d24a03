// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  extension evc_conflation {
    /// Refers to the keys, which are not retained.
    init(_ keys: ConflationKeys) {
      self.init()
      context = Unmanaged.passUnretained(keys).toOpaque()
      number = { context, payload in
        Unmanaged<ConflationKeys>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
          $0.number(payload.unsafelyUnwrapped)
        }
      }
      guard keys.comparison != nil else { return }
      // The core calls these three only if all of them are set: each finds a comparison.
      is_same = { context, key, payload in
        Unmanaged<ConflationKeys>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
          $0.comparison.unsafelyUnwrapped.isSame(key.unsafelyUnwrapped, payload.unsafelyUnwrapped)
        }
      }
      keep = { context, payload in
        Unmanaged<ConflationKeys>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
          $0.comparison.unsafelyUnwrapped.keep(payload.unsafelyUnwrapped)
        }
      }
      let_go = { context, key in
        Unmanaged<ConflationKeys>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
          $0.comparison.unsafelyUnwrapped.letGo(key.unsafelyUnwrapped)
        }
      }
    }
  }
#endif
