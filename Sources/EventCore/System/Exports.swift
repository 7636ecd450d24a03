// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Public signatures name types of Dispatch: with this, `import EventCore` is enough to call them.
@_exported public import Dispatch
