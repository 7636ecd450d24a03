// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A program that comes from EventDrivenSwift imports this module and nothing else: all of EventCore,
// and what is written here for such programs alone.
@_exported public import EventCore
