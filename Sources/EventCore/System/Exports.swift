// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// What public signatures name, so that `import EventCore` is enough to call them.
@_exported public import Dispatch
