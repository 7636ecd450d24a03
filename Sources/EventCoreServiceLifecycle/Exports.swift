// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if ServiceLifecycle
  @_exported public import EventCore
#endif
