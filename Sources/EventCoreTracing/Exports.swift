// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Tracing
  @_exported public import EventCore
#endif
