// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Logging
  @_exported public import EventCore
#endif
