/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The smallest program in C: a router, a mailbox, one event. Prints what scripts/measure-footprint.sh asks for. */
#include <eventcore/eventcore.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	++*(unsigned *)context;
	return false;
}

/* What a line of a file in /proc/self says, in its unit. */
static long line_of(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	char line[256];
	long value = -1;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			sscanf(line + strlen(name), "%ld", &value);
	if (file != NULL)
		fclose(file);
	if (value < 0)
		exit(1);
	return value;
}

struct memory {
	/* All of it, and what no file is behind: not code. */
	long resident, anonymous;
};

/* From the page tables: the figures of /proc/self/status may lag behind by many pages. */
static struct memory memory(void)
{
	const char *path = "/proc/self/smaps_rollup";

	return (struct memory){ line_of(path, "Rss:"), line_of(path, "Anonymous:") };
}

int main(void)
{
	/* Twice, so that what reading it needs is in the first figure. */
	struct memory before = (memory(), memory()), idle, used;
	uint64_t start = evc_clock_now(), event = 1, nanoseconds;
	unsigned handled = 0;
	struct evc_subscription_options options = { .size = sizeof(options), .context = &handled, .deliver = deliver };
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox;
	struct evc_router *router;

	if (evc_router_create(&router) != EVC_OK || evc_mailbox_create(NULL, &mailbox) != EVC_OK ||
	    evc_mailbox_add_subscription(mailbox, &options, &subscription) != EVC_OK ||
	    evc_router_subscribe(router, 1, subscription, 0, false) != EVC_OK)
		return 1;
	nanoseconds = evc_clock_now() - start;
	idle = memory();
	start = evc_clock_now();
	if (evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &event, sizeof(event), 8, NULL) != EVC_OK ||
	    evc_mailbox_pump(mailbox, EVC_FOREVER) != EVC_EMPTY || handled != 1)
		return 1;
	nanoseconds += evc_clock_now() - start;
	used = memory();
	printf("%lu %ld %ld %ld %ld %ld\n", (unsigned long)(nanoseconds / 1000), idle.resident - before.resident,
	       idle.anonymous - before.anonymous, used.resident - before.resident, used.anonymous - before.anonymous,
	       line_of("/proc/self/status", "Threads:"));
	return 0;
}
