// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Every suite runs on every core of the build.
public let cores = EventCentral.Core.available
