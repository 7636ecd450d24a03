// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Metrics
  @_exported public import EventCore
#endif
