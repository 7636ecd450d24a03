/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Typed events in C++17: owners, a thread of the core's, events with strings, a handler that ends, one that throws.
 *
 *     main ──► router ──┬──► mailbox ──► a thread: chat
 *                       └──► mailbox ──► main pumps: chat, score
 */
#include <eventcore/eventcore.hpp>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <string>

namespace {

struct chat {
	std::string text;
};

struct score {
	/* C may dispatch it too, under this key. */
	static constexpr uint64_t event_key = 7;
	int points;
};

/* Too large for an envelope: all receivers share one. */
struct board {
	int cells[64];
};

struct fragile {
	fragile() = default;
	fragile(const fragile &) { throw std::runtime_error("no copy today"); }
};

std::atomic<int> failures{ 0 };

void expect(bool condition, const char *what)
{
	if (condition)
		return;
	std::fprintf(stderr, "wrong: %s\n", what);
	std::exit(1);
}

void play()
{
	eventcore::router router;
	eventcore::mailbox here, elsewhere;
	std::promise<std::string> heard;
	std::string log;
	int points = 0, cells = 0;

	expect(router && here && elsewhere, "no router, no mailbox");
	auto far = router.subscribe<chat>(elsewhere, [&heard](const chat &chat) { heard.set_value(chat.text); });
	auto near = router.subscribe<chat>(here, [&log](const chat &chat) { log += chat.text; });
	auto scores = router.subscribe<score>(here, [&points](const score &score) {
		if (score.points < 0)
			throw std::runtime_error("a negative score");
		points += score.points;
	});
	auto boards = router.subscribe<board>(here, [&cells](const board &board) { cells += board.cells[63]; });
	auto never = router.subscribe<fragile>(here, [](const fragile &) { std::abort(); });
	expect(far && near && scores && boards && never, "not subscribed");
	eventcore::thread thread(elsewhere);
	expect(bool(thread), "no thread");

	const std::string words(200, 'w');
	uint32_t receivers = 0;
	expect(router.dispatch(chat{ words }, EVC_LANE_QUEUE_NORMAL, &receivers) == EVC_OK && receivers == 2, "two receivers");
	expect(heard.get_future().get() == words, "what was said arrived on the thread");
	for (int i : { 1, 2, -1, 3 })
		expect(router.dispatch(score{ i }) == EVC_OK, "a score");
	board full{};
	full.cells[63] = 9;
	expect(router.dispatch(full) == EVC_OK, "a board");
	try {
		(void)(router.dispatch(fragile()) == EVC_OK);
		expect(false, "a copy that throws is the caller's");
	} catch (const std::runtime_error &) {
	}
	using time = std::chrono::steady_clock::time_point;
	expect(here.pump_until(time::min()) == EVC_TIMED_OUT && log.empty(), "no time, no event");
	expect(here.pump_until(time::max()) == EVC_EMPTY, "all events in time");
	expect(log == words && points == 6 && cells == 9 && failures == 1, "each event was handled once");

	/* One that waits when its subscription ends is not handled (D6). */
	expect(router.dispatch(score{ 100 }) == EVC_OK, "a late score");
	scores = eventcore::subscription();
	expect(here.pump() == EVC_EMPTY && points == 6, "an ended handler is called no more");
	expect(router.dispatch(score{ 100 }, EVC_LANE_STACK_HIGH, &receivers) == EVC_OK && receivers == 0, "nobody is left");
	expect(here.wait(std::chrono::milliseconds(-1)) == EVC_TIMED_OUT, "nothing waits");
}

} // namespace

int main()
{
	eventcore::on_handler_exception = [](std::exception_ptr) { failures++; };
	play();
	expect(evc_shutdown() == EVC_OK, "everything was given back");
	std::puts("typed events: ok");
}
