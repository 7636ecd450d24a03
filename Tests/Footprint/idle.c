/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The smallest program in C: a router, a mailbox, one event. Prints what scripts/measure-footprint.sh asks for. */
#include <eventcore/eventcore.h>

#include <stdio.h>
#include <string.h>

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	++*(unsigned *)context;
	return false;
}

/* A line of /proc/self/status, in its unit. */
static long status_of(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long value = -1;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			sscanf(line + strlen(name) + 1, "%ld", &value);
	if (file != NULL)
		fclose(file);
	return value;
}

int main(void)
{
	/* Twice, so that what reading it needs is in the first figure. */
	long before = (status_of("VmRSS"), status_of("VmRSS"));
	uint64_t start = evc_clock_now();
	unsigned handled = 0;
	struct evc_subscription_options options = { .size = sizeof(options), .context = &handled, .deliver = deliver };
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox;
	struct evc_router *router;
	uint64_t event = 1, nanoseconds;

	if (evc_router_create(&router) != EVC_OK || evc_mailbox_create(NULL, &mailbox) != EVC_OK ||
	    evc_mailbox_add_subscription(mailbox, &options, &subscription) != EVC_OK ||
	    evc_router_subscribe(router, 1, subscription, 0, false) != EVC_OK ||
	    evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &event, sizeof(event), 8, NULL) != EVC_OK ||
	    evc_mailbox_pump(mailbox, EVC_FOREVER) != EVC_EMPTY || handled != 1)
		return 1;
	nanoseconds = evc_clock_now() - start;
	printf("%lu %ld %ld\n", (unsigned long)(nanoseconds / 1000), status_of("VmRSS") - before, status_of("Threads"));
	return 0;
}
