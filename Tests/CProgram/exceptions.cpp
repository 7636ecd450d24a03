/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What eventcore.hpp says of exceptions. Its functions throw nothing but what a copy of an event throws. What a function
 * of the user's throws is given to on_handler_exception, and the next one is called; without such a function the process
 * ends by std::terminate, whose message says what was thrown. Those ends are children of this process.
 */
#include <eventcore/eventcore.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct event {
	int number;
};
struct fragile {
	fragile() = default;
	fragile(const fragile &) { throw std::runtime_error("a copy"); }
};
struct handler {
	void operator()(const event &) const {}
};
struct other_handler {
	void operator()(const fragile &) const {}
};
struct timed {
	void operator()() const {}
};
struct chooser {
	uint32_t operator()(const event &, const eventcore::balancer_choice &) const { return 0; }
};
using std::chrono::nanoseconds;
using time_point = std::chrono::steady_clock::time_point;

/* Values of the owners, for expressions that nobody evaluates. */
template <class Owner> Owner &of() noexcept;

#define NEVER_THROWS(...) static_assert(noexcept(__VA_ARGS__), #__VA_ARGS__)
/* What every owner has: a status, and whether it was made. */
template <class Owner, class... From> constexpr bool is_owner = std::is_nothrow_constructible_v<Owner, From...> &&
	std::is_nothrow_destructible_v<Owner> && noexcept(bool(of<const Owner>())) && noexcept(of<const Owner>().status());
template <class Keeper> constexpr bool is_keeper = is_owner<Keeper> && std::is_nothrow_move_constructible_v<Keeper> &&
	std::is_nothrow_move_assignable_v<Keeper>;

static_assert(is_owner<eventcore::router> && is_owner<eventcore::mailbox, evc_mailbox_options> &&
	      is_owner<eventcore::thread, const eventcore::mailbox &, evc_thread_options> &&
	      is_owner<eventcore::scheduler, evc_scheduler_options> && is_owner<eventcore::node> &&
	      is_owner<eventcore::node, eventcore::node *> && is_owner<eventcore::balancer<event>, eventcore::router &> &&
	      is_owner<eventcore::balancer<event>, eventcore::router &, chooser>, "an owner");
static_assert(is_keeper<eventcore::subscription> && is_keeper<eventcore::timer> && is_keeper<eventcore::node_handler> &&
	      is_keeper<eventcore::balancer_member>, "what keeps something for its life");
static_assert(std::is_nothrow_copy_constructible_v<eventcore::mailbox> &&
	      std::is_nothrow_copy_assignable_v<eventcore::mailbox>, "a mailbox is shared");
NEVER_THROWS(eventcore::key_of<event>());
NEVER_THROWS(eventcore::deadline_at(of<const time_point>()));
NEVER_THROWS(of<eventcore::mailbox>().get());
NEVER_THROWS(of<eventcore::mailbox>().pump());
NEVER_THROWS(of<eventcore::mailbox>().pump_until(of<const time_point>()));
NEVER_THROWS(of<eventcore::mailbox>().pump_until(uint64_t(1)));
NEVER_THROWS(of<eventcore::mailbox>().run());
NEVER_THROWS(of<eventcore::mailbox>().wait(of<const nanoseconds>()));
NEVER_THROWS(of<eventcore::mailbox>().close());
NEVER_THROWS(of<eventcore::mailbox>().close_when_empty());
NEVER_THROWS(of<eventcore::router>().get());
NEVER_THROWS(of<eventcore::router>().subscribe<event>(of<eventcore::mailbox>(), handler()));
NEVER_THROWS(of<eventcore::router>().subscribe<fragile>(of<eventcore::mailbox>(), other_handler()));
NEVER_THROWS(of<eventcore::router>().dispatch(of<event>()));
static_assert(!noexcept(of<eventcore::router>().dispatch(of<fragile>())), "a copy of the caller's throws to the caller");
NEVER_THROWS(of<eventcore::thread>().join());
NEVER_THROWS(of<eventcore::timer>().cancel());
NEVER_THROWS(of<eventcore::timer>().detach());
NEVER_THROWS(of<eventcore::scheduler>().get());
NEVER_THROWS(of<eventcore::scheduler>().now());
NEVER_THROWS(of<eventcore::scheduler>().at(1, timed()));
NEVER_THROWS(of<eventcore::scheduler>().after(of<const nanoseconds>(), timed()));
NEVER_THROWS(of<eventcore::scheduler>().dispatch_after(of<const nanoseconds>(), of<eventcore::router>(), event()));
NEVER_THROWS(of<eventcore::scheduler>().run_due());
NEVER_THROWS(of<eventcore::node_handler>().remove_and_wait());
NEVER_THROWS(of<eventcore::node>().get());
NEVER_THROWS(of<eventcore::node>().attach(of<eventcore::node>()));
NEVER_THROWS(of<eventcore::node>().detach());
NEVER_THROWS(of<eventcore::node>().on<event>(EVC_HANDLER_RAISE, handler()));
NEVER_THROWS(of<eventcore::node>().raise(of<event>()));
NEVER_THROWS(of<eventcore::node>().propagate(of<fragile>()));
NEVER_THROWS(of<eventcore::balancer<event>>().get());
NEVER_THROWS(of<eventcore::balancer<event>>().add(of<eventcore::mailbox>(), handler()));
NEVER_THROWS(of<const eventcore::balancer_choice>().count());
NEVER_THROWS(of<const eventcore::balancer_choice>().load(0));
NEVER_THROWS(of<const eventcore::balancer_choice>().least_loaded());

int told = 0, called = 0;

void expect(bool condition, const char *what, const char *place)
{
	if (condition)
		return;
	std::fprintf(stderr, "wrong: %s: %s\n", place, what);
	std::exit(1);
}

/* The places where the header calls a function of the user's: each one calls it twice, and the first call throws. */

void throw_once(const char *what)
{
	if (called++ == 0)
		throw std::runtime_error(what);
}

void subscribed()
{
	eventcore::router router;
	eventcore::mailbox mailbox;
	evc_mailbox_statistics found;
	auto subscription = router.subscribe<event>(mailbox, [](const event &) { throw_once("a subscription"); });

	for (int i : { 1, 2 })
		expect(router.dispatch(event{ i }) == EVC_OK, "dispatched", "a subscription");
	expect(mailbox.pump() == EVC_EMPTY, "pumped", "a subscription");
	evc_mailbox_read_statistics(mailbox.get(), &found);
	expect(found.taken == 2 && found.dropped == 0, "both count as handled", "a subscription");
}

void timer()
{
	evc_scheduler_options driven = {};
	const evc_scheduler_clock clock = { nullptr, [](void *) -> uint64_t { return 5; },
					    [](void *, evc_parker *, uint32_t, uint64_t) { std::abort(); } };

	driven.driven = true;
	driven.clock = &clock;
	eventcore::scheduler scheduler(driven);
	auto first = scheduler.at(1, [] { throw_once("a timer"); }), second = scheduler.at(2, [] { throw_once("a timer"); });

	expect(scheduler.run_due() == 2, "both fire", "a timer");
}

void noded()
{
	eventcore::node node;
	bool ended = true;
	auto first = node.on<event>(EVC_HANDLER_RAISE, [](const event &) { throw_once("a node"); });
	auto second = node.on<event>(EVC_HANDLER_RAISE, [](const event &) { throw_once("a node"); return false; });

	expect(node.raise(event{ 1 }, EVC_WALK_RAISE, &ended) == EVC_OK && !ended, "the event goes on", "a node");
}

void choosing()
{
	eventcore::router router;
	eventcore::mailbox mailboxes[2];
	eventcore::balancer<event> balancer(router, [](const event &, const eventcore::balancer_choice &) -> uint32_t {
		throw_once("a chooser");
		return 1;
	});
	auto first = balancer.add(mailboxes[0], handler()), second = balancer.add(mailboxes[1], handler());
	uint32_t receivers = 0;

	for (int i : { 1, 2 })
		expect(router.dispatch(event{ i }, EVC_LANE_QUEUE_LOW, &receivers) == EVC_OK && receivers == 1, "goes to one",
		       "a chooser");
}

void balanced()
{
	eventcore::router router;
	eventcore::mailbox mailbox;
	eventcore::balancer<event> balancer(router);
	auto member = balancer.add(mailbox, [](const event &) { throw_once("a member"); });

	for (int i : { 1, 2 })
		expect(router.dispatch(event{ i }) == EVC_OK, "dispatched", "a member");
	expect(mailbox.pump() == EVC_EMPTY, "pumped", "a member");
}

const struct {
	const char *what;
	void (*run)();
} places[] = { { "a subscription", subscribed }, { "a timer", timer }, { "a node", noded }, { "a chooser", choosing },
	       { "a member", balanced } };

/* A child, since nobody survives it. */
void ends_without_a_function(const char *what, void (*run)())
{
	int output[2], status = 0;
	std::string said;
	char bytes[512];

	expect(pipe(output) == 0, "a pipe", what);
	const pid_t child = fork();
	expect(child >= 0, "a child", what);
	if (child == 0) {
		const rlimit no_core = { 0, 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		dup2(output[1], STDERR_FILENO);
		run();
		_exit(0);
	}
	close(output[1]);
	for (ssize_t count; (count = read(output[0], bytes, sizeof(bytes))) > 0;)
		said.append(bytes, static_cast<size_t>(count));
	close(output[0]);
	expect(waitpid(child, &status, 0) == child, "the child's end", what);
	expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "without a function the process ends by SIGABRT", what);
	expect(said.find(what) != std::string::npos, "the last message says what was thrown", what);
}

} // namespace

int main()
{
	/* First, while nothing of the core has begun in this process. */
	for (auto &place : places)
		ends_without_a_function(place.what, place.run);
	for (auto &place : places) {
		static const char *expected;

		expected = place.what;
		told = called = 0;
		eventcore::on_handler_exception = [](std::exception_ptr what) {
			try {
				std::rethrow_exception(what);
			} catch (const std::runtime_error &error) {
				told += error.what() == std::string(expected);
			}
		};
		place.run();
		expect(told == 1, "the function was told once, and what", place.what);
		expect(called == 2, "the next call came", place.what);
	}
	expect(evc_shutdown() == EVC_OK, "everything was given back", "the end");
	std::puts("exceptions: ok");
}
