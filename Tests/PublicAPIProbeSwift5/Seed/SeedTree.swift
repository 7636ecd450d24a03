// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventsTree
import Testing

// EventsTree prints principles and no examples. This is code as its users write it, in either language
// mode, with its public interface alone.

enum SeedTree {
  struct UserLoggedIn: Event {
    let name: String
  }

  /// A module with a node of its own, and one that is a node.
  class ProfileModule {
    let node: EventNode
    var greeting = ""

    init(parent: EventNode?) {
        node = EventNode(parent: parent)
        #if swift(>=6)
          // A closure that any thread may call cannot capture a class that is not Sendable.
          node.addHandler(owner: self, ProfileModule.onUserLoggedIn)
        #else
          node.addHandler { [weak self] (event: UserLoggedIn) in
              self?.onUserLoggedIn(event)
          }
        #endif
    }

    func onUserLoggedIn(_ event: UserLoggedIn) {
        greeting = "Hello, \(event.name)"
    }

    func removeHandlers() {
        node.removeHandlers(for: UserLoggedIn.self, with: .onPropagate)
        node.removeHandlers(for: UserLoggedIn.self)
        node.removeAllHandlers()
    }
  }

  class LoginModule: EventNode, @unchecked Sendable {
    override init(parent: EventNode?) {
        super.init(parent: parent)
        addHandler([.onRaise, .consumeEvent]) { (event: UserLoggedIn) in }
    }

    func logIn() {
        raise(event: UserLoggedIn(name: "Ann"))
    }
  }
}

@Suite("EventsTree, as its users write")
struct SeedTreeTests {
  @Test("a module hears what another raises, unless it is consumed")
  func modules() {
    let root = EventNode(parent: nil)
    let profile = SeedTree.ProfileModule(parent: root)
    let login = SeedTree.LoginModule(parent: root)
    login.logIn()
    #expect(profile.greeting == "")
    login.removeAllHandlers()
    login.logIn()
    #expect(profile.greeting == "Hello, Ann")
    profile.removeHandlers()
  }
}
