// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

@_exported public import EventCore
