# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Read by scripts that build everything there is: the default traits, and those of the products for servers.
# shellcheck disable=SC2034
all_traits=(--traits default,ServiceLifecycle,Tracing,Logging,Metrics)
server_modules=(EventCoreServiceLifecycle EventCoreTracing EventCoreLogging EventCoreMetrics)
