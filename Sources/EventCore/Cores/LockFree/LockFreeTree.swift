// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CEventCore

  /// The trees of the C core, of which there is one domain.
  enum LockFreeTree: TreeCore {
    // MARK: Nodes

    static func makeNode(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
      var options = evc_node_options(
        size: MemoryLayout<evc_node_options>.size,
        owner: context,
        release: { object in
          // Not nil: the retained object that `add` gave to the core, which gives it back once.
          Unmanaged<TreeHandler>.fromOpaque(object.unsafelyUnwrapped).release()
        })
      var made: OpaquePointer?
      requireCore(evc_node_create(&options, &made), "make a node")
      // Not nil: the core sets it with EVC_OK, and anything else has ended the program.
      return UnsafeMutableRawPointer(made.unsafelyUnwrapped)
    }

    static func endNode(_ node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      evc_node_end(OpaquePointer(node))
    }

    static func attach(
      _ node: UnsafeMutableRawPointer, to parent: UnsafeMutableRawPointer
    ) -> TreeAttachment {
      var former: UnsafeMutableRawPointer?
      let status = evc_node_attach(OpaquePointer(node), OpaquePointer(parent), &former)
      guard status != EVC_NOT_PERMITTED else { return .cycle }
      requireCore(status, "attach a node")
      return .attached(previous: former)
    }

    static func detach(_ node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      evc_node_detach(OpaquePointer(node))
    }

    // MARK: Handlers

    static func add(
      _ node: UnsafeMutableRawPointer, key: UInt, modes: UInt8, object: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
      var made: OpaquePointer?
      requireCore(
        evc_node_add_handler(OpaquePointer(node), UInt64(key), modes, object, &made),
        "add a handler to a node")
      // Not nil, as in `makeNode`.
      return UnsafeMutableRawPointer(made.unsafelyUnwrapped)
    }

    static func remove(_ registration: UnsafeMutableRawPointer) -> Bool {
      evc_handler_remove(OpaquePointer(registration)) == EVC_OK
    }

    static func isActive(_ registration: UnsafeMutableRawPointer) -> Bool {
      evc_handler_is_active(OpaquePointer(registration))
    }

    static func waitUntilDone(_ registration: UnsafeMutableRawPointer) -> Bool {
      evc_handler_remove_and_wait(OpaquePointer(registration)) != EVC_NOT_PERMITTED
    }

    static func release(_ registration: UnsafeMutableRawPointer) {
      evc_handler_drop(OpaquePointer(registration))
    }

    static func removeAll(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8) -> Int {
      evc_node_remove_handlers(OpaquePointer(node), UInt64(key), phases)
    }

    // MARK: Walking

    // Into its witness, which would call it: each raise comes by here.
    @inline(__always)
    static func begin(_ node: UnsafeMutableRawPointer, key: UInt, phases: UInt8)
      -> UnsafeMutablePointer<TreeWalk>?
    {
      // The core takes an empty scope for a mistake.
      guard phases & EventRaiseScope.tree.rawValue != 0 else { return nil }
      var walk: UnsafeMutablePointer<evc_walk>?
      let status = evc_walk_begin(OpaquePointer(node), UInt64(key), UInt32(phases & ~TreePhases.inward), &walk)
      guard status == EVC_OK else {
        if status != EVC_EMPTY { requireCore(status, "raise an event") }
        return nil
      }
      // Not nil: the core sets it with EVC_OK. What begins with an `evc_walk` goes on as a
      // `TreeWalk` does; tree_walker.h has the offsets.
      return UnsafeMutableRawPointer(walk.unsafelyUnwrapped)
        .assumingMemoryBound(to: TreeWalk.self)
    }

    static func next(_ walk: UnsafeMutablePointer<TreeWalk>) -> Bool {
      let status = evc_walk_next(head(walk))
      guard status != EVC_OK else { return true }
      if status != EVC_EMPTY { requireCore(status, "propagate an event") }
      evc_walk_end(head(walk))
      return false
    }

    static func mayCall(_ walk: UnsafeMutablePointer<TreeWalk>, _ index: Int) -> Bool {
      evc_walk_will_call(head(walk), UInt32(truncatingIfNeeded: index))
    }

    static func end(_ walk: UnsafeMutablePointer<TreeWalk>) {
      evc_walk_end(head(walk))
    }

    private static func head(
      _ walk: UnsafeMutablePointer<TreeWalk>
    ) -> UnsafeMutablePointer<evc_walk> {
      UnsafeMutableRawPointer(walk).assumingMemoryBound(to: evc_walk.self)
    }

    // MARK: Looking

    static func node(of registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
      UnsafeMutableRawPointer(evc_handler_node(OpaquePointer(registration)))
    }

    static func top(of walk: UnsafeMutablePointer<TreeWalk>) -> UnsafeMutableRawPointer {
      UnsafeMutableRawPointer(evc_walk_top(head(walk)))
    }

    static func identifier(of registration: UnsafeMutableRawPointer) -> ObjectIdentifier {
      // Not nil: every node here was made with an owner, which nobody changes. An identifier is the
      // address of that object, which may have ended since; the node is there.
      unsafeBitCast(
        evc_node_owner(evc_handler_node(OpaquePointer(registration))).unsafelyUnwrapped,
        to: ObjectIdentifier.self)
    }

    static func depth(of node: UnsafeMutableRawPointer) -> Int {
      evc_node_depth(OpaquePointer(node))
    }

    static func withTrees(_ body: (any TreeReader) -> Void) {
      evc_tree_lock()
      body(Reader())
      evc_tree_unlock()
    }

    private struct Reader: TreeReader {
      func parent(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(evc_node_parent(OpaquePointer(node)))
      }

      func firstChild(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(evc_node_first_child(OpaquePointer(node)))
      }

      func nextSibling(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(evc_node_next_sibling(OpaquePointer(node)))
      }

      func context(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        evc_node_has_ended(OpaquePointer(node)) ? nil : evc_node_owner(OpaquePointer(node))
      }

      func firstRegistration(of node: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(evc_node_first_handler(OpaquePointer(node)))
      }

      func nextRegistration(after registration: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawPointer(evc_handler_next(OpaquePointer(registration)))
      }
    }
  }
#endif
