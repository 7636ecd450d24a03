// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Observation

// `import EventCore` takes no name of Observation's: this is that module's protocol, which asks for no
// member, and nothing here is refused.

final class Model: Observable {
  var score = 0
}
