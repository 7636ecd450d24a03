/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Timers, trees and balancers in C++17, with the owners of eventcore.hpp:
 *
 *     scheduler ──► router ──► mailbox                a countdown
 *     leaf ─► squadron ─► root, and down again        a hit, and what it means
 *     router ──► balancer ──┬──► mailbox ──► thread   orders: each to one of two
 *                           └──► mailbox ──► thread
 */
#include <eventcore/eventcore.hpp>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

struct tick {
	int count;
};
struct hit {
	std::string by;
};
struct order {
	std::string name;
	uint32_t customer;
};
/* Copied as bytes on its way through a balancer. */
struct number {
	int value;
};

std::atomic<int> failures{ 0 };

void expect(bool condition, const char *what)
{
	if (condition)
		return;
	std::fprintf(stderr, "wrong: %s\n", what);
	std::exit(1);
}

/* A clock that stands still until the program moves it: a driven scheduler knows no other time. */
uint64_t manual_time = 1000;
uint64_t manual_now(void *) { return manual_time; }
void never_sleep(void *, evc_parker *, uint32_t, uint64_t) { std::abort(); }

void driven_timers()
{
	const evc_scheduler_clock clock = { nullptr, manual_now, never_sleep };
	evc_scheduler_options options = {};
	std::string log;
	uint64_t next = 0;

	options.clock = &clock;
	options.driven = true;
	eventcore::router router;
	eventcore::mailbox mailbox;
	eventcore::scheduler scheduler(options);
	expect(router && mailbox && scheduler, "nothing was made");
	auto ticks = router.subscribe<tick>(mailbox, [&log](const tick &tick) { log += std::to_string(tick.count); });
	{
		auto once = scheduler.after(10ns, [&log] { log += 'a'; });
		auto never = scheduler.after(10ns, [&log] { log += "never"; });
		auto often = scheduler.after(20ns, [&log] { log += 'b'; }, 10ns);
		auto thrown = scheduler.at(1025, [] { throw std::runtime_error("a timer"); });
		auto event = scheduler.dispatch_after(30ns, router, tick{ 7 });
		expect(once && never && often && thrown && event, "a timer was not set");
		expect(never.cancel() == EVC_OK && never.cancel() == EVC_NOT_FOUND, "cancelled once");
		expect(scheduler.run_due(&next) == 0 && next == 1010, "nothing is due");
		manual_time = 1010;
		expect(scheduler.run_due(&next) == 1 && log == "a" && next == 1020, "one is due");
		expect(once.cancel() == EVC_NOT_FOUND, "it has fired");
		manual_time = 1030;
		expect(scheduler.run_due(&next) == 4, "twice the one that repeats, an event, and one that throws");
		expect(log == "abb" && failures == 1, "in the order of their times");
		expect(mailbox.pump() == EVC_EMPTY && log == "abb7", "the event has come");
	}
	manual_time = 5000;
	expect(scheduler.run_due(&next) == 0 && next == EVC_FOREVER, "timers end with their owners");
	auto late = scheduler.at(1, [&log] { log += 'c'; });
	late.detach();
	expect(!late && scheduler.run_due() == 1 && log == "abb7c", "late ones fire at once");
	/* Ended with the scheduler, which frees what it holds. */
	scheduler.after(1h, [text = std::string(100, 'x')] {}).detach();
}

/* Events that take their time on the same clock: a frame of it has room for so many. */
void frames()
{
	const evc_clock clock = { nullptr, manual_now };
	evc_mailbox_options options = {};
	int handled = 0;
	uint64_t count = 0;

	options.clock = &clock;
	eventcore::router router;
	eventcore::mailbox mailbox(options);
	auto ticks = router.subscribe<tick>(mailbox, [&handled](const tick &tick) {
		expect(tick.count == handled++, "in the order of their dispatch");
		manual_time += 10;
	});
	expect(bool(ticks), "not subscribed");
	for (int i = 0; i < 5; i++)
		expect(router.dispatch(tick{ i }) == EVC_OK, "a tick");
	expect(mailbox.pump_until(manual_time + 25, EVC_FOREVER, &count) == EVC_TIMED_OUT && count == 3, "three begin in time");
	expect(mailbox.pump_until(manual_time, EVC_FOREVER, &count) == EVC_TIMED_OUT && count == 0, "no time is left");
	expect(mailbox.pump_until(EVC_FOREVER, EVC_FOREVER, &count) == EVC_EMPTY && count == 2, "the others");
}

void threaded_timers()
{
	std::promise<void> fired;
	eventcore::scheduler scheduler;

	expect(bool(scheduler), "no scheduler");
	auto soon = scheduler.after(1ms, [&fired] { fired.set_value(); });
	fired.get_future().wait();
	/* A timer that outlives its scheduler does nothing. */
	eventcore::timer left;
	{
		eventcore::scheduler brief;

		left = brief.after(1h, [] { std::abort(); });
		expect(bool(left), "a timer of another scheduler");
	}
	expect(left.cancel() == EVC_NOT_FOUND, "dropped with its scheduler");
}

void trees()
{
	std::string log;
	eventcore::node root;
	bool ended = true;

	expect(bool(root), "no node");
	std::optional<eventcore::node> squadron(std::in_place, &root);
	eventcore::node raider(&*squadron), wing(&*squadron);
	auto up = squadron->on<hit>(EVC_HANDLER_RAISE, [&log](const hit &hit) { log += "squadron:" + hit.by + ' '; });
	auto top = root.on<hit>(EVC_HANDLER_RAISE, [&log](const hit &) { log += "root "; });
	auto down = wing.on<hit>(EVC_HANDLER_PROPAGATE, [&log](const hit &) { log += "wing "; });
	auto thrown = wing.on<hit>(EVC_HANDLER_PROPAGATE, [](const hit &) { throw std::runtime_error("a handler"); });
	expect(up && top && down && thrown, "no handler");
	expect(root.attach(raider) == EVC_NOT_PERMITTED, "a cycle");
	expect(raider.raise(hit{ "you" }, EVC_WALK_RAISE | EVC_WALK_PROPAGATE, &ended) == EVC_OK && !ended, "not consumed");
	expect(log == "squadron:you root wing " && failures == 1, "up, then down");
	log.clear();
	expect(squadron->propagate(hit{ "me" }) == EVC_OK && log == "wing ", "down from here");
	log.clear();
	{
		auto first = raider.on<hit>(EVC_HANDLER_RAISE, [](const hit &hit) { return hit.by == "friend"; });
		auto shield = raider.on<hit>(EVC_HANDLER_RAISE | EVC_HANDLER_CONSUME, [&log](const hit &) { log += "shield "; });

		expect(raider.raise(hit{ "you" }, EVC_WALK_RAISE, &ended) == EVC_OK && ended && log == "shield ", "consumed");
		expect(raider.raise(hit{ "friend" }, EVC_WALK_RAISE, &ended) == EVC_OK && ended && log == "shield ", "a choice");
		expect(shield.remove_and_wait() == EVC_OK, "removed");
	}
	expect(raider.raise(tick{ 1 }) == EVC_OK, "no handler is no error");
	squadron.reset();
	log.clear();
	expect(raider.raise(hit{ "you" }, EVC_WALK_RAISE) == EVC_OK && log.empty(), "its parent has ended");
	expect(raider.attach(root) == EVC_OK && raider.raise(hit{ "you" }) == EVC_OK && log == "root ", "attached elsewhere");
}

void balanced()
{
	constexpr int events = 1000;
	eventcore::router router;
	eventcore::mailbox mailboxes[2];
	std::atomic<int> handled[2] = {}, wrong{ 0 };
	std::atomic<int> sum{ 0 };

	eventcore::balancer<order> orders(router, [](const order &order, const eventcore::balancer_choice &choice) {
		return order.customer % choice.count();
	});
	eventcore::balancer<number> numbers(router, [](const number &, const eventcore::balancer_choice &choice) {
		return choice.least_loaded();
	});
	expect(orders && numbers, "no balancer");
	std::vector<eventcore::balancer_member> members;
	for (uint32_t i = 0; i < 2; i++) {
		members.push_back(orders.add(mailboxes[i], [&, i](const order &order) {
			handled[i]++;
			if (order.customer % 2 != i || order.name != std::string(100, 'n'))
				wrong++;
		}));
		members.push_back(numbers.add(mailboxes[i], [&](const number &number) { sum += number.value; }));
		expect(members.back() && members[members.size() - 2], "no member");
	}
	/* Nobody handles anything yet: the one with less to do is the other one. */
	for (int i = 1; i <= 10; i++)
		expect(router.dispatch(number{ i }) == EVC_OK, "a number");
	for (auto &mailbox : mailboxes) {
		uint64_t found = 0;

		expect(mailbox.pump_until(std::chrono::steady_clock::time_point::max(), EVC_FOREVER, &found) == EVC_EMPTY &&
			       found == 5, "half of the numbers");
	}
	expect(sum == 55, "every number once");
	{
		eventcore::thread first(mailboxes[0]), second(mailboxes[1]);

		for (uint32_t i = 0; i < events; i++)
			expect(router.dispatch(order{ std::string(100, 'n'), i }) == EVC_OK, "an order");
		for (auto &mailbox : mailboxes)
			mailbox.close_when_empty();
		expect(first.join() == EVC_OK && second.join() == EVC_OK, "both threads have ended");
	}
	expect(handled[0] == events / 2 && handled[1] == events / 2 && wrong == 0, "each order went to its place");
	members.clear();
	uint32_t receivers = 1;
	expect(router.dispatch(order{ "late", 1 }, EVC_LANE_QUEUE_NORMAL, &receivers) == EVC_OK && receivers == 0, "none is left");
	eventcore::balancer<tick> ticks(router);
	expect(bool(ticks), "a balancer with round robin");
}

} // namespace

int main()
{
	eventcore::on_handler_exception = [](std::exception_ptr) { failures++; };
	driven_timers();
	frames();
	threaded_timers();
	failures = 0;
	trees();
	balanced();
	expect(evc_shutdown() == EVC_OK, "everything was given back");
	std::puts("timers and trees: ok");
}
