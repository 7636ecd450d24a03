# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# Read by scripts that build everything there is: the default traits, and those of the products for servers.
# shellcheck disable=SC2034
all_traits=(--traits default,ServiceLifecycle,Tracing,Logging,Metrics)
server_modules=(EventCoreServiceLifecycle EventCoreTracing EventCoreLogging EventCoreMetrics)
# shellcheck disable=SC2034
base_traits=("${all_traits[@]}")
# For scripts that go on with a build of other flags, which replace these: with a flag more, all would be built anew.
[ -z "${BUILD_ARGUMENTS:-}" ] || read -ra all_traits <<<"$BUILD_ARGUMENTS"
