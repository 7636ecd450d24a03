// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
