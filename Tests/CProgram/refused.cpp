/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What eventcore.hpp refuses to compile, with which sentence; without REFUSED it compiles. */
#include <eventcore/eventcore.hpp>

struct event {
	int number;
};
struct only_moved {
	only_moved() = default;
	only_moved(only_moved &&) = default;
};

evc_status refused(eventcore::router &router, eventcore::mailbox &mailbox)
{
#if REFUSED == 1 // an event type is named without const, volatile and &
	return router.subscribe<const event>(mailbox, [](const event &) {}).status();
#elif REFUSED == 2 // an event can be copied
	return router.dispatch(only_moved());
#else
	return router.subscribe<event>(mailbox, [](const event &) {}).status();
#endif
}
