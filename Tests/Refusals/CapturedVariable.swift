// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A closure that is called on another thread cannot change a variable of the function around it.

struct Score: Eventable { var score = 0 }

func register(on thread: EventThread, _ node: EventNode) {
  var count = 0
  Score.addListener(nil, executeOn: .listenerThread) { _ in
    count += 1  // expected-error {{mutation of captured var 'count' in concurrently-executing code}}
  }
  thread.addEventCallback { (_: Score) in
    count += 1  // expected-error {{mutation of captured var 'count' in concurrently-executing code}}
  }
  node.addHandler { (_: Score) in
    count += 1  // expected-error {{mutation of captured var 'count' in concurrently-executing code}}
  }
  node.addHandler(executeOn: .listenerThread) { (_: Score) in
    count += 1  // expected-error {{mutation of captured var 'count' in concurrently-executing code}}
  }
  print(count)
}
