// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Coordinators start, stop, and go")
struct CoordinatorLifeTests {
  let event = Teams.didSelect(1)

  @Test("the root is linked when it is set; stop() clears the link, start() sets it again")
  func link() {
    let screen = Screen()
    let coordinator = Coordinator(rootResponder: screen)
    #expect(screen.parentCoordinator === coordinator)
    #expect(!coordinator.isStarted)
    coordinator.start()
    #expect(coordinator.isStarted)
    #expect(screen.parentCoordinator === coordinator)
    coordinator.stop()
    #expect(!coordinator.isStarted)
    #expect(screen.parentCoordinator == nil)
    #expect(coordinator.rootResponder === screen)
    coordinator.start()
    #expect(coordinator.isStarted)
    #expect(screen.parentCoordinator === coordinator)
  }

  @Test("another root takes the place of the first; a root that went elsewhere keeps its link")
  func roots() {
    let (first, second) = (Screen(), Screen())
    let coordinator = Coordinator(rootResponder: first)
    coordinator.rootResponder = second
    #expect(first.parentCoordinator == nil)
    #expect(second.parentCoordinator === coordinator)
    let other = Coordinator(rootResponder: second)
    #expect(second.parentCoordinator === other)
    coordinator.stop()
    #expect(second.parentCoordinator === other)
    coordinator.rootResponder = nil
    #expect(second.parentCoordinator === other)
    // A stopped coordinator links nothing until it starts.
    coordinator.rootResponder = first
    #expect(first.parentCoordinator == nil)
    coordinator.start()
    #expect(first.parentCoordinator === coordinator)
  }

  @Test("a typed coordinator knows its root's type")
  func typed() {
    final class TitledScreen: Screen { var title = "teams" }
    let coordinator = TypedCoordinator(rootViewController: TitledScreen())
    #expect(coordinator.rootViewController.title == "teams")
    #expect(coordinator.rootResponder === coordinator.rootViewController)
    #expect(coordinator.rootViewController.parentCoordinator === coordinator)
  }

  @Test("stopping stops what is below, from the leaves up, the last child first")
  func stopping() {
    let journal = Journal()
    let desks = ["top", "a", "b", "a1", "a2", "b1"].map { Desk($0, journal) }
    let (top, a, b, a1, a2, b1) = (desks[0], desks[1], desks[2], desks[3], desks[4], desks[5])
    top.start()
    top.startChild(a)
    top.startChild(b)
    a.startChild(a1)
    a.addChild(a2)
    b.startChild(b1)
    #expect(
      journal.take() == ["top starts", "a starts", "b starts", "a1 starts", "b1 starts"])
    top.stop()
    #expect(
      journal.take() == ["b1 stops", "b stops", "a2 stops", "a1 stops", "a stops", "top stops"])
    for desk in desks {
      #expect(!desk.isStarted)
      #expect(desk.parentCoordinator == nil)
      #expect(desk.childCoordinators.isEmpty)
    }
  }

  @Test("stopping twice does no harm, whatever was in between")
  func stoppingTwice() {
    let journal = Journal()
    let (top, child) = (Desk("top", journal), Desk("child", journal))
    top.startChild(child)
    child.stop()
    child.stop()
    #expect(child.parentCoordinator == nil)
    // Stopped, and a child again: the second stop takes it out, too.
    top.addChild(child)
    child.stop()
    #expect(top.childCoordinators.isEmpty)
    top.startChild(child)
    #expect(child.isStarted)
    // stop() inside stop().
    child.beforeStop = { [unowned child] in
      child.beforeStop = {}
      child.stop()
    }
    child.stop()
    #expect(top.childCoordinators.isEmpty)
    #expect(!child.isStarted)
  }

  @Test("one that was stopped is asked nothing, not even while it is stopped again")
  func stoppedTwiceAndAsked() {
    let journal = Journal()
    let (top, child) = (Desk("top", journal), Desk("child", journal))
    top.intercept(Teams.self) { _ in
      journal.entries.append("interceptor")
      return .handled
    }
    top.unhandledEvents = { _ in
      journal.entries.append("unhandled")
      return .handled
    }
    var outcome: EventEmission?
    child.beforeStop = { [event, unowned child] in outcome = child.emitEvent(event) }
    top.start()
    top.stop()
    top.addChild(child)
    _ = journal.take()
    top.stop()
    #expect(outcome == .unhandled)
    #expect(journal.take() == ["child stops", "top stops"])
    // Started again it is asked, also while it is stopped for the first time since.
    top.start()
    top.startChild(child)
    _ = journal.take()
    top.stop()
    #expect(outcome == .handled)
    #expect(journal.take() == ["interceptor", "child stops", "top stops"])
  }

  @Test("an override that does not call super is taken out all the same")
  func forgetfulStop() {
    final class Forgetful: Coordinator {
      override func stop() {}
    }
    let top = Coordinator()
    let forgetful = Forgetful()
    let leaf = Coordinator()
    top.startChild(forgetful)
    forgetful.startChild(leaf)
    top.stop()
    #expect(top.childCoordinators.isEmpty)
    #expect(forgetful.parentCoordinator == nil)
    #expect(!leaf.isStarted)
  }

  @Test("stop() leaves alone a coordinator that is taken out of the tree meanwhile")
  func stopThatMoves() {
    let journal = Journal()
    let desks = ["top", "a", "b", "c", "other"].map { Desk($0, journal) }
    let (top, a, b, c, other) = (desks[0], desks[1], desks[2], desks[3], desks[4])
    top.addChild(a)
    top.addChild(b)
    b.addChild(c)
    // The leaf, which is stopped first, takes its parent out and puts itself into another tree.
    c.beforeStop = { [unowned top, unowned b, unowned c, unowned other] in
      top.removeChild(b)
      other.addChild(c)
    }
    top.stop()
    #expect(journal.take() == ["c stops", "a stops", "top stops"])
    #expect(top.childCoordinators.isEmpty)
    #expect(b.parentCoordinator == nil)
  }

  @Test("stop() leaves alone a coordinator that is moved or removed before its turn")
  func stopThatMovesElsewhere() {
    for isMoved in [true, false] {
      let journal = Journal()
      let desks = ["a", "b", "c", "d", "r", "x", "s"].map { Desk($0, journal) }
      let (a, b, c, d) = (desks[0], desks[1], desks[2], desks[3])
      let (r, x, s) = (desks[4], desks[5], desks[6])
      a.addChild(b)
      b.addChild(d)
      b.addChild(c)
      r.addChild(x)
      x.addChild(s)
      c.beforeStop = { [unowned a, unowned b, unowned x] in
        if isMoved { x.addChild(b) } else { a.removeChild(b) }
      }
      a.stop()
      #expect(journal.take() == ["c stops", "a stops"])
      #expect(b.parentCoordinator === (isMoved ? x : nil))
      #expect(isSame(b.childCoordinators, [d]))
      #expect(isSame(r.childCoordinators, [x]))
      #expect(x.childCoordinators.first === s)
    }
  }

  @Test("stop() leaves alone a coordinator that the deinit of another one moves")
  func stopThatEndsACoordinator() {
    final class Leaving: Coordinator {
      var atEnd: () -> Void = {}
      deinit { atEnd() }
    }
    let journal = Journal()
    let desks = ["a", "b", "d", "r", "x", "s"].map { Desk($0, journal) }
    let (a, b, d) = (desks[0], desks[1], desks[2])
    let (r, x, s) = (desks[3], desks[4], desks[5])
    a.addChild(b)
    b.addChild(d)
    r.addChild(x)
    x.addChild(s)
    func add() {
      let leaving = Leaving()
      leaving.atEnd = { [unowned b, unowned x] in x.addChild(b) }
      b.addChild(leaving)
    }
    // In a function of its own, so that its parent alone holds it.
    add()
    a.stop()
    #expect(journal.take() == ["a stops"])
    #expect(isSame(r.childCoordinators, [x]))
    #expect(isSame(x.childCoordinators, [s, b]))
    #expect(isSame(b.childCoordinators, [d]))
  }

  @Test("children keep their order; one that is moved comes last, one that is added twice stays")
  func children() {
    let (first, second) = (Coordinator(), Coordinator())
    let children = (0..<3).map { _ in Coordinator() }
    children.forEach(first.addChild)
    first.addChild(children[0])
    #expect(isSame(first.childCoordinators, children))
    second.addChild(children[1])
    #expect(children[1].parentCoordinator === second)
    #expect(isSame(first.childCoordinators, [children[0], children[2]]))
    #expect(!first.removeChild(children[1]))
    #expect(second.removeChild(children[1]))
    #expect(children[1].parentCoordinator == nil)
    children[1].removeFromParent()
    first.addChild(children[1])
    #expect(isSame(first.childCoordinators, [children[0], children[2], children[1]]))
  }

  @Test("D9: a parent holds its children and is not held by them, so that the tree ends with its top")
  func lifetimes() {
    final class Tracked: Coordinator {
      let token: Lifetime.Token
      init(_ lifetime: Lifetime) {
        token = lifetime.token()
        super.init(rootResponder: Screen())
      }
    }
    let lifetime = Lifetime()
    var held: EventCoordinator?
    do {
      let top = Tracked(lifetime)
      top.start()
      for _ in 0..<3 {
        let child = Tracked(lifetime)
        top.startChild(child)
        child.intercept(Teams.self) { [unowned child] _ in
          child.isStarted ? .handled : .pass
        }
        for _ in 0..<3 { child.startChild(Tracked(lifetime)) }
      }
      #expect(lifetime.alive == 13)
      top.childCoordinators[0].childCoordinators[0].removeFromParent()
      #expect(lifetime.alive == 12)
      held = top.childCoordinators[1]
    }
    // One coordinator is held from outside, and its three children with it.
    #expect(lifetime.alive == 4)
    #expect(held?.parentCoordinator == nil)
    #expect(held?.childCoordinators.count == 3)
    held = nil
    #expect(lifetime.alive == 0)
  }

  @Test("D9: a stopped coordinator is freed, and its screen with it")
  func stoppedIsFreed() {
    let top = Coordinator()
    weak var screen: Screen?
    weak var child: Coordinator?
    do {
      let root = Screen()
      let coordinator = Coordinator(rootResponder: root)
      (screen, child) = (root, coordinator)
      top.startChild(coordinator)
    }
    #expect(child != nil)
    #expect(screen != nil)
    child?.stop()
    #expect(child == nil)
    #expect(screen == nil)
  }

  @Test("a chain of a million coordinators is stopped and freed without overflowing the stack")
  func deep() {
    func chain() -> Coordinator {
      let top = Coordinator()
      var bottom = top
      for _ in 1..<deepChain {
        let child = Coordinator()
        bottom.startChild(child)
        bottom = child
      }
      return top
    }
    let top = chain()
    top.stop()
    #expect(top.childCoordinators.isEmpty)
    weak var gone: Coordinator?
    do {
      let top = chain()
      gone = top
    }
    #expect(gone == nil)
  }

  @Test("a chain that is built from the leaf up leads to its top")
  func fromTheLeaf() {
    var top = Coordinator()
    let leaf = top
    for _ in 0..<1_000 {
      let parent = Coordinator()
      parent.addChild(top)
      top = parent
    }
    var asked = false
    top.intercept { (_: Teams) in
      asked = true
      return .handled
    }
    #expect(leaf.emitEvent(event) == .handled)
    #expect(asked)
  }
}

private func isSame(_ left: [EventCoordinator], _ right: [EventCoordinator]) -> Bool {
  left.elementsEqual(right, by: ===)
}
