/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "engine.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

KEPT bool trace_is_on;

void trace(const char *format, ...)
{
	va_list arguments;

	if (!trace_is_on || !fiber_is_exploring())
		return;
	printf("  %*sfiber %u: ", (int)fiber_number() * 4, "", fiber_number());
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

const char *trace_order(int order)
{
	static const char *const names[] = { "relaxed", "consume", "acquire",
					     "release", "acq_rel", "seq_cst" };

	return names[order];
}

const char *trace_place(uintptr_t program_counter)
{
	static KEPT char buffers[4][300];
	static KEPT unsigned next;
	char *buffer = buffers[next++ % 4], command[100], line[300];
	FILE *pipe;

	snprintf(buffer, sizeof(buffers[0]), "at %lx", program_counter);
	/* It takes a process of its own: done only for a trace that is shown. */
	if (!trace_is_on)
		return buffer;
	snprintf(command, sizeof(command), "addr2line -s -f -e /proc/%d/exe %lx", getpid(),
		 program_counter - 1);
	pipe = popen(command, "r");
	if (pipe == NULL)
		return buffer;
	buffer[0] = '\0';
	while (fgets(line, sizeof(line), pipe) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(buffer + strlen(buffer), sizeof(buffers[0]) - strlen(buffer), "%s%s",
			 buffer[0] == '\0' ? "" : " ", line);
	}
	pclose(pipe);
	return buffer;
}

const char *trace_site(const struct explorer_site *site)
{
	static KEPT char buffer[300];
	const char *slash;

	if (site->file == NULL)
		return trace_place((uintptr_t)(unsigned)site->line);
	slash = strrchr(site->file, '/');
	snprintf(buffer, sizeof(buffer), "%s:%d", slash != NULL ? slash + 1 : site->file, site->line);
	return buffer;
}
