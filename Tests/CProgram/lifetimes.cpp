/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Owners of eventcore.hpp that end inside of what they own: what runs then is finished, and nothing is left behind. Run it
 * under a sanitizer too.
 */
#include <eventcore/eventcore.hpp>

#include "expect.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

namespace {

/* Until it succeeds: a thread that nobody joins may still be ending. */
bool shuts_down()
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);

	while (evc_shutdown() != EVC_OK) {
		if (std::chrono::steady_clock::now() > end)
			return false;
		std::this_thread::yield();
	}
	return true;
}

struct event {
	int number;
};

/* The function of a timer, whose end ends the timer. */
struct last_holder {
	std::unique_ptr<eventcore::timer> *timer;

	explicit last_holder(std::unique_ptr<eventcore::timer> *of) noexcept : timer(of) {}
	last_holder(last_holder &&other) noexcept : timer(std::exchange(other.timer, nullptr)) {}
	~last_holder()
	{
		if (timer != nullptr)
			timer->reset();
	}
	void operator()() const {}
};

void timer_ended_by_its_function()
{
	eventcore::scheduler scheduler;
	auto timer = std::make_unique<eventcore::timer>();

	*timer = scheduler.after(std::chrono::hours(1), last_holder(&timer));
	expect(bool(*timer), "the timer was set");
	expect(timer->cancel() == EVC_OK, "a timer is cancelled whose function's end deletes it");
	expect(timer == nullptr, "it was deleted");
}

/* A function that repeats ends itself, while its owner does. */
void timer_cancelled_twice_at_once()
{
	std::atomic<bool> running{ false };
	std::promise<evc_status> inside;
	eventcore::timer timer;
	eventcore::scheduler scheduler;

	timer = scheduler.after(std::chrono::nanoseconds(0), [&] {
		running = true;
		while (running.load())
			;
		inside.set_value(timer.cancel());
	}, std::chrono::hours(1));
	while (!running.load())
		std::this_thread::yield();
	running = false;
	const evc_status outside = timer.cancel(), other = inside.get_future().get();

	expect((outside == EVC_NOT_FOUND) != (other == EVC_NOT_FOUND), "one of two cancels at once finds it cancelled");
}

void thread_ended_by_its_handler()
{
	eventcore::router router;
	eventcore::mailbox mailbox;
	auto ended = std::make_shared<std::promise<void>>();
	std::unique_ptr<eventcore::thread> thread;
	auto subscription = router.subscribe<event>(mailbox, [&thread, ended](const event &) {
		thread.reset();
		ended->set_value();
	});

	thread = std::make_unique<eventcore::thread>(mailbox);
	expect(router.dispatch(event{ 1 }) == EVC_OK, "the event was dispatched");
	expect(ended->get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready, "its handler has ended it");
	expect(router.dispatch(event{ 2 }) == EVC_OK, "nobody is no error");
	enum evc_status status;
	// Not permitted while the thread is about to end.
	while ((status = mailbox.pump()) == EVC_NOT_PERMITTED)
		std::this_thread::yield();
	expect(status == EVC_CLOSED, "D10: its mailbox has closed");
}

/* Destroyed after the thread's function has returned. */
thread_local std::unique_ptr<eventcore::thread> own;

void thread_ended_by_its_own_data()
{
	eventcore::router router;
	eventcore::mailbox mailbox;
	std::promise<void> kept;
	std::unique_ptr<eventcore::thread> thread;
	auto subscription = router.subscribe<event>(mailbox, [&](const event &) {
		own = std::move(thread);
		kept.set_value();
	});

	thread = std::make_unique<eventcore::thread>(mailbox);
	expect(router.dispatch(event{ 1 }) == EVC_OK, "the event was dispatched");
	expect(kept.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready, "the thread has itself");
	mailbox.close();
}

} // namespace

int main()
{
	timer_ended_by_its_function();
	expect(shuts_down(), "everything was given back by a timer that its function has ended");
	for (int i = 0; i < 100; i++)
		timer_cancelled_twice_at_once();
	expect(shuts_down(), "everything was given back by timers that were cancelled twice at once");
	for (int i = 0; i < 20; i++)
		thread_ended_by_its_handler();
	expect(shuts_down(), "D9: everything was given back by a thread that its handler has ended");
	for (int i = 0; i < 20; i++)
		thread_ended_by_its_own_data();
	expect(shuts_down(), "D9: everything was given back by a thread that ended with its own data");
	std::puts("lifetimes: ok");
}
