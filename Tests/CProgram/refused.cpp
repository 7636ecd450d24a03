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
/* Its copy, which may throw, is what moves it. */
struct only_copied {
	only_copied() = default;
	only_copied(const only_copied &) noexcept(false) {}
};

evc_status refused([[maybe_unused]] eventcore::router &router, [[maybe_unused]] eventcore::mailbox &mailbox,
		   [[maybe_unused]] eventcore::scheduler &scheduler)
{
#if REFUSED == 1 // an event type is named without const, volatile and &
	return router.subscribe<const event>(mailbox, [](const event &) {}).status();
#elif REFUSED == 2 // an event can be copied
	return router.dispatch(only_moved());
#elif REFUSED == 3 // an event that is dispatched later moves without an exception
	return scheduler.dispatch_after(std::chrono::seconds(1), router, only_copied()).status();
#elif REFUSED == 4 // deleted
	eventcore::node root;
	return [=]() mutable { return root.propagate(event{ 1 }); }();
#else
	return router.subscribe<event>(mailbox, [](const event &) {}).status();
#endif
}
