/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What eventcore.hpp says of its owners: every call on one that could not be made returns why; a timer with a period
 * whose time has passed begins now, and times that nanoseconds cannot hold never come; a mailbox with a clock of its own
 * takes times of that clock alone; owners are made without arguments wherever a value is; classes that have an operator new or & of their
 * own, and functions with the names of the header's beside them, are events and choosers too; what can be called is a
 * handler, whatever it returns, or returns a bool by; and a node is attached while others raise events there. Run it
 * under ThreadSanitizer too.
 */
#include <eventcore/eventcore.hpp>

#include "expect.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

struct event {
	int number;
};

bool has_memory = true;

void *allocate(void *, size_t size, size_t alignment)
{
	const evc_allocator *of = evc_allocator_default();

	return has_memory ? of->allocate(of->context, size, alignment) : nullptr;
}

void deallocate(void *, void *memory, size_t size, size_t alignment)
{
	const evc_allocator *of = evc_allocator_default();

	of->deallocate(of->context, memory, size, alignment);
}

const evc_allocator allocator = { nullptr, allocate, deallocate };

void not_made()
{
	const auto handler = [](const event &) {};

	/* First: nodes and handlers lie in slabs, and one that is there needs no memory. */
	has_memory = false;
	eventcore::node none;
	eventcore::scheduler no_scheduler;
	auto timer = no_scheduler.after(std::chrono::hours(1), [] {});
	has_memory = true;
	eventcore::node root(nullptr), child(&none);

	expect(!none && none.status() == EVC_OUT_OF_MEMORY, "a node without memory is false, and says why");
	expect(none.attach(root) == EVC_OUT_OF_MEMORY, "so does its attach");
	expect(none.raise(event{ 1 }) == EVC_OUT_OF_MEMORY, "so does an event that is raised there");
	expect(none.on<event>(EVC_HANDLER_RAISE, handler).remove_and_wait() == EVC_OUT_OF_MEMORY, "so does a handler there");
	expect(!timer && timer.cancel() == EVC_OUT_OF_MEMORY, "so does a timer of a scheduler without memory");
	expect(eventcore::node_handler().remove_and_wait() == EVC_NOT_FOUND, "a keeper of nothing says that");

	expect(!child && child.status() == EVC_OUT_OF_MEMORY, "a node whose parent was not made is false, and says why");
	expect(child.raise(event{ 1 }) == EVC_OUT_OF_MEMORY, "no event is raised there");
	expect(child.on<event>(EVC_HANDLER_RAISE, handler).status() == EVC_OUT_OF_MEMORY, "no handler is there");
	expect(child.attach(root) == EVC_OK && child, "it is made as soon as it has a parent");
	expect(child.on<event>(0x100 | EVC_HANDLER_RAISE, handler).status() == EVC_INVALID_ARGUMENT, "modes are a byte");
	expect(root.attach(child) == EVC_NOT_PERMITTED && root, "a cycle is refused, and the node is as it was");
	expect(child.raise(event{ 1 }) == EVC_OK && root.raise(event{ 1 }) == EVC_OK, "both can be used");
}

void attached_beside_raises()
{
	eventcore::node first, second, child(&first);
	auto handler = first.on<event>(EVC_HANDLER_RAISE, [](const event &) {});
	std::atomic<bool> done{ false };
	/* No std::async, in which the sanitizer sees no race. */
	std::thread raising([&] {
		for (int i = 0; i < 20000; i++)
			expect(child.raise(event{ 1 }) == EVC_OK, "an event is raised at a node that is being attached");
		done = true;
	});

	for (int i = 0; !done.load(std::memory_order_relaxed); i++)
		expect(child.attach(i % 2 != 0 ? first : second) == EVC_OK, "a node is attached while events are raised there");
	raising.join();
}

uint64_t manual_time = 1000000;

void periods_from_now_on()
{
	const evc_scheduler_clock clock = { nullptr, [](void *) { return manual_time; }, nullptr };
	evc_scheduler_options options = {};
	uint64_t next = 0;
	int fired = 0;

	options.driven = true;
	options.clock = &clock;
	eventcore::scheduler scheduler(options);
	auto timer = scheduler.at(0, [&] { fired++; }, std::chrono::nanoseconds(10));

	expect(scheduler.run_due(&next) == 1 && fired == 1, "a time that has passed means once, at once");
	expect(next == manual_time + 10, "a period begins then");
	manual_time += 25;
	expect(scheduler.run_due(&next) == 2 && fired == 3, "periods that were missed later are caught up");
}

void times_that_never_come()
{
	const evc_scheduler_clock clock = { nullptr, [](void *) { return manual_time; }, nullptr };
	evc_scheduler_options options = {};
	uint64_t next = 0;
	using std::chrono::nanoseconds;
	using time_point = std::chrono::steady_clock::time_point;

	options.driven = true;
	options.clock = &clock;
	eventcore::scheduler scheduler(options);
	auto never = scheduler.after(nanoseconds::max(), [] {}), once = scheduler.at(0, [] {}, nanoseconds::max());

	expect(scheduler.run_due(&next) == 1 && next == EVC_FOREVER, "the longest delay and period never end");

	/* What nanoseconds cannot hold: conversions of these would overflow. */
	using lone_hours = std::chrono::duration<uint64_t, std::ratio<3600>>;
	auto hours = scheduler.after(std::chrono::hours::max(), [] {}), lone = scheduler.after(lone_hours::max(), [] {}),
	     seconds = scheduler.at(0, [] {}, std::chrono::seconds::max());
	expect(scheduler.run_due(&next) == 1 && next == EVC_FOREVER, "nor do longer ones in other units");
	auto before = scheduler.after(std::chrono::hours::min(), [] {});
	expect(scheduler.run_due(&next) == 1, "a delay that is over for ages is none");
	/* A short number of large units, and many small ones. */
	auto year = scheduler.after(std::chrono::duration<short, std::ratio<86400>>(365), [] {});
	expect(scheduler.run_due(&next) == 0 && next == manual_time + UINT64_C(365) * 86400000000000, "a year is a year");
	expect(eventcore::deadline_at(time_point::max()) == EVC_FOREVER, "nor does this come");
	expect(eventcore::deadline_at(time_point::min()) == 0, "the first time has passed");
}

void waits_without_end()
{
	eventcore::router router;
	eventcore::mailbox mailbox;
	auto subscription = router.subscribe<event>(mailbox, [](const event &) {});
	std::atomic<bool> waits{ false };
	std::thread posting([&] {
		while (!waits)
			std::this_thread::yield();
		expect(router.dispatch(event{ 1 }) == EVC_OK, "an event was dispatched");
	});

	waits = true;
	expect(mailbox.wait(std::chrono::hours::max()) == EVC_OK, "a wait of the most hours ends with an event");
	posting.join();
}

void budget_on_a_clock_of_its_own()
{
	const evc_clock clock = { nullptr, [](void *) { return manual_time; } };
	evc_mailbox_options options = {};
	uint64_t handled = 1;
	int calls = 0;

	options.clock = &clock;
	eventcore::router router;
	eventcore::mailbox made(options), mailbox;
	const auto now = std::chrono::steady_clock::now();
	auto subscription = router.subscribe<event>(made, [&](const event &) { calls++; });

	mailbox = made;
	expect(router.dispatch(event{ 1 }) == EVC_OK, "an event was dispatched");
	expect(mailbox.pump_until(now, EVC_FOREVER, &handled) == EVC_INVALID_ARGUMENT && handled == 0 && calls == 0,
	       "a time of another clock than the mailbox's is refused");
	expect(eventcore::mailbox(made).pump_until(now) == EVC_INVALID_ARGUMENT, "also by a copy");
	expect(mailbox.pump_until(manual_time) == EVC_TIMED_OUT && calls == 0, "a time of its own clock has come");
	expect(mailbox.pump_until(manual_time + 1) == EVC_EMPTY && calls == 1, "or it comes later");
	expect(eventcore::mailbox().pump_until(now) == EVC_TIMED_OUT, "one without a clock takes that of the system");
}

/* An engine's structures and arrays of owners, which are made by copy-list-initialization. */
void without_arguments()
{
	struct world {
		eventcore::mailbox mailbox;
		eventcore::router router;
		int number;
	} world = {};
	eventcore::mailbox mailboxes[2] = {};
	const auto make = []() -> eventcore::mailbox { return {}; };
	/* Not called: for ThreadSanitizer the end of the core does not await the thread of the last scheduler. */
	[[maybe_unused]] const auto make_scheduler = []() -> eventcore::scheduler { return {}; };

	expect(world.mailbox && world.router && mailboxes[1] && make(), "all of them were made");
}

/* Hides the global operators; that of an event is not called, since its place is in the core. */
struct pooled {
	std::string text = "an event";

	static void *operator new(std::size_t) = delete;
	static void operator delete(void *) {}
};

struct pooled_chooser {
	static void *operator new(std::size_t) = delete;
	static void operator delete(void *) { expect(false, "a chooser that the global operator made is deleted by it"); }
	uint32_t operator()(const pooled &, const eventcore::balancer_choice &) const { return 1; }
};

void operators_of_their_own()
{
	eventcore::router router;
	eventcore::mailbox mailboxes[2];
	eventcore::balancer<pooled> balancer(router, pooled_chooser());
	std::string heard;
	auto hear = [&](const pooled &event) { heard += event.text; };
	auto first = balancer.add(mailboxes[0], hear), second = balancer.add(mailboxes[1], hear);

	expect(router.dispatch(pooled()) == EVC_OK, "an event with an operator new of its own was dispatched");
	expect(mailboxes[0].pump() == EVC_EMPTY && heard.empty(), "its chooser has one, too, and chose the other receiver");
	expect(mailboxes[1].pump() == EVC_EMPTY && heard == "an event", "it came");
}

struct signed_event {
	int number;
	int *sum;
	void add() const { *sum += number; }
	bool is_last() const { return number == 2; }
	uint32_t receiver(const eventcore::balancer_choice &) const { return 1; }
};

void members_as_handlers()
{
	eventcore::router router;
	eventcore::mailbox mailbox, other;
	eventcore::balancer<signed_event> balancer(router, &signed_event::receiver);
	eventcore::node node;
	int sum = 0;
	auto subscription = router.subscribe<signed_event>(mailbox, &signed_event::add);
	auto first = balancer.add(mailbox, &signed_event::add), second = balancer.add(other, &signed_event::add);
	auto handler = node.on<signed_event>(EVC_HANDLER_RAISE, &signed_event::is_last);
	bool ended = true;

	expect(router.dispatch(signed_event{ 5, &sum }) == EVC_OK, "an event with members as handlers was dispatched");
	expect(mailbox.pump() == EVC_EMPTY && sum == 5, "a member of the event was called");
	expect(other.pump() == EVC_EMPTY && sum == 10, "a member has chosen the second receiver");
	expect(node.raise(signed_event{ 1, &sum }, EVC_WALK_RAISE, &ended) == EVC_OK && !ended, "its false ends no way");
	expect(node.raise(signed_event{ 2, &sum }, EVC_WALK_RAISE, &ended) == EVC_OK && ended, "its true ends one");
}

void answers_by_reference()
{
	eventcore::node node;
	bool answer = true, ended = false;
	int calls = 0;
	auto first = node.on<event>(EVC_HANDLER_RAISE, [&](const event &) -> bool & { return answer; });
	auto second = node.on<event>(EVC_HANDLER_RAISE, [&](const event &) { calls++; });

	expect(node.raise(event{ 1 }, EVC_WALK_RAISE, &ended) == EVC_OK && ended && calls == 0, "a bool & ends the way");
	answer = false;
	expect(node.raise(event{ 1 }, EVC_WALK_RAISE, &ended) == EVC_OK && !ended && calls == 1, "if it is true");
}

/* Functions and operators of the user's that are found by the types of arguments. The header means its own. */
namespace named {
struct hit {
	int points;
	const int *operator&() const { return &other; }
	static constexpr int other = 7;
};
struct [[nodiscard]] outcome {
	int points;
};
struct tick {
	int *points;
	outcome operator()() const { return { *points += 500 }; }
};
template <class Function, class Event> void call(Function &, const Event &) { expect(false, "the user's call of two"); }
template <class Function> void call(Function &) { expect(false, "the user's call of one"); }
} // namespace named

void names_of_their_own()
{
	evc_scheduler_options options = {};
	eventcore::router router;
	eventcore::mailbox mailbox;
	eventcore::node node;
	int points = 0;
	auto handler = [&](const named::hit &hit) { return named::outcome{ points += hit.points }; };
	auto subscription = router.subscribe<named::hit>(mailbox, handler);
	auto raised = node.on<named::hit>(EVC_HANDLER_RAISE, handler);
	auto ending = node.on<named::hit>(EVC_HANDLER_RAISE, [](const named::hit &) { return true; });
	bool ended = false;

	options.driven = true;
	eventcore::scheduler scheduler(options);
	auto timer = scheduler.at(0, named::tick{ &points });
	expect(router.dispatch(named::hit{ 3 }) == EVC_OK && mailbox.pump() == EVC_EMPTY, "an event was dispatched");
	expect(points == 3, "its handler was called, with its bytes");
	expect(node.raise(named::hit{ 40 }, EVC_WALK_RAISE, &ended) == EVC_OK && points == 43, "so was that of a node");
	expect(ended, "and one that ends its way");
	expect(scheduler.run_due() == 1 && points == 543, "so was the function of a timer");
}

} // namespace

int main()
{
	expect(evc_allocator_install(&allocator) == EVC_OK, "the allocator was installed");
	not_made();
	attached_beside_raises();
	periods_from_now_on();
	operators_of_their_own();
	members_as_handlers();
	answers_by_reference();
	times_that_never_come();
	waits_without_end();
	budget_on_a_clock_of_its_own();
	without_arguments();
	names_of_their_own();
	expect(evc_shutdown() == EVC_OK, "everything was given back");
	std::puts("owners: ok");
}
