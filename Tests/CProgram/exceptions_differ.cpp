/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * One program of two halves, of which one has exceptions and the other was compiled without: this file is compiled once
 * for each. They have the same key for one type, and the same function for what a handler throws.
 */
#include <eventcore/eventcore.hpp>

#include "expect.hpp"

#include <cstdio>
#include <cstdlib>

struct event {
	int number;
};

/* In the half without exceptions. */
uint64_t key_without();
void tell_without(void (*function)(std::exception_ptr));
evc_status dispatch_without(evc_router *router, int number);

#if !defined(__cpp_exceptions)

uint64_t key_without()
{
	return eventcore::key_of<event>();
}

void tell_without(void (*function)(std::exception_ptr))
{
	eventcore::on_handler_exception = function;
}

evc_status dispatch_without(evc_router *router, int number)
{
	const event event = { number };

	return evc_dispatch_bytes(router, key_without(), EVC_LANE_QUEUE_NORMAL, &event, sizeof(event), alignof(struct event),
				  nullptr);
}

#else

int main()
{
	static int told = 0;
	int number = 0;

	expect(eventcore::key_of<event>() == key_without(), "both halves have one key for one type");
	tell_without([](std::exception_ptr) { told++; });
	{
		eventcore::router router;
		eventcore::mailbox mailbox;
		auto subscription = router.subscribe<event>(mailbox, [&](const event &event) {
			number = event.number;
			throw number;
		});

		expect(dispatch_without(router.get(), 3) == EVC_OK, "the half without exceptions has dispatched");
		expect(mailbox.pump() == EVC_EMPTY, "the mailbox was pumped");
	}
	expect(number == 3, "a handler of the half with exceptions has the event of the other one");
	expect(told == 1, "a function that the half without exceptions has set is told what a handler throws");
	expect(evc_shutdown() == EVC_OK, "everything was given back");
	std::puts("exceptions that differ: ok");
}
#endif
