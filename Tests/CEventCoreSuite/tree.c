/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include <stdarg.h>
#include <stdio.h>

enum evc_status suite_raise(struct evc_node *node, uint64_t key, uint32_t scope, unsigned consumer,
			    struct suite_calls *calls)
{
	struct evc_walk *walk;
	enum evc_status status = evc_walk_begin(node, key, scope, &walk);

	if (status != EVC_OK)
		return status;
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			struct suite_mark *mark;

			if (!evc_walk_will_call(walk, i))
				continue;
			mark = walk->objects[i];
			atomic_fetch_add_explicit(&mark->calls, 1, memory_order_relaxed);
			if (calls != NULL && calls->count < SUITE_LOG)
				calls->ids[calls->count++] = mark->id;
			if (mark->act != NULL)
				mark->act(mark);
			if (consumer != 0 && mark->id == consumer) {
				evc_walk_end(walk);
				return EVC_OK;
			}
		}
	} while ((status = evc_walk_next(walk)) == EVC_OK);
	evc_walk_end(walk);
	return status == EVC_EMPTY ? EVC_OK : status;
}

void suite_release_mark(void *opaque)
{
	struct suite_mark *mark = opaque;

	/* Release: pairs with the test that waits for it. */
	atomic_fetch_add_explicit(&mark->releases, 1, memory_order_release);
}

const char *suite_node(struct evc_node *parent, struct evc_node **out)
{
	struct evc_node_options options = { sizeof(options), NULL, suite_release_mark };

	EXPECT_OK(evc_node_create(&options, out));
	if (parent != NULL)
		EXPECT_OK(evc_node_attach(*out, parent, NULL));
	return NULL;
}

const char *suite_handle(struct evc_node *node, uint64_t key, uint8_t modes,
			 struct suite_mark *mark, struct evc_handler **out)
{
	EXPECT_OK(evc_node_add_handler(node, key, modes, mark, out));
	return NULL;
}

const char *suite_expect_calls(const struct suite_calls *calls, ...)
{
	char found[512] = "";
	bool is_equal = true;
	va_list ids;
	int length = 0;
	unsigned i;

	for (i = 0; i < calls->count && length < 500; i++)
		length += snprintf(found + length, sizeof(found) - (size_t)length, " %u",
				   calls->ids[i]);
	va_start(ids, calls);
	for (i = 0; is_equal; i++) {
		unsigned id = va_arg(ids, unsigned);

		if (id == 0)
			break;
		is_equal = i < calls->count && calls->ids[i] == id;
	}
	va_end(ids);
	EXPECT(is_equal && i == calls->count, "call %u is wrong; these were called:%s", i, found);
	return NULL;
}
#endif
