/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file eventcore.hpp
 * The core for C++17: owners instead of pairs of calls, and events by their type instead of keys and bytes.
 *
 *     eventcore::router router;
 *     eventcore::mailbox mailbox;
 *     auto hits = router.subscribe<hit>(mailbox, [&](const hit &hit) { score += hit.points; });
 *     if (router.dispatch(hit{ 3 }) != EVC_OK)
 *         return;
 *     mailbox.pump();
 *
 * Failures are values of evc_status, as in C; nothing here throws but a copy constructor of an event of yours. An
 * owner whose making failed is false (`if (!mailbox)`) and says why (`status()`); every call on it returns that
 * status. It compiles without exceptions and RTTI.
 *
 * An exception that leaves a handler does not pass through the core: it is given to
 * `eventcore::on_handler_exception`, and without such a function the program ends (std::terminate), whose message
 * names it. The event counts as handled, and the consumer goes on with the next one.
 *
 * Threads, order and progress are those of the C functions. The C objects are `get()`: they can be declared ahead
 * (`struct evc_router;`), and passed between translation units with and without exceptions. The owners can neither be:
 * they lie in an inline namespace, one for each of the two.
 */
#ifndef EVENTCORE_HPP
#define EVENTCORE_HPP

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "eventcore.hpp needs C++17: compile with -std=c++17, or a later standard"
#endif

#include "eventcore.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace eventcore {

/**
 * Called with what a function of the user's has thrown, on the thread that ran it: a handler's on the consumer's or
 * the raising thread, a timer's on the scheduler's, a chooser's on the dispatching one, whose event then goes to the
 * first receiver. It is the active exception. nullptr, the initial value: std::terminate. One for the process, or for
 * each library that hides its symbols from others.
 */
EVC_API inline std::atomic<void (*)(std::exception_ptr)> on_handler_exception{ nullptr };

/* Apart from the rest of the details, which differ below. */
namespace key_detail {
template <class Event, class = void> struct key_of {
	EVC_API static inline char anchor = 0;
	static uint64_t value() noexcept { return reinterpret_cast<uintptr_t>(&anchor); }
};
template <class Event> struct key_of<Event, std::void_t<decltype(Event::event_key)>> {
	static_assert(Event::event_key > 0 && Event::event_key < 4096, "an event_key is from 1 to 4095");
	static uint64_t value() noexcept { return Event::event_key; }
};
} // namespace key_detail

/**
 * The key of an event type: `Event::event_key`, from 1 to 4095, if the type has a public one; otherwise the address of
 * a variable that all libraries of the process share as long as they hide neither it nor the type: with
 * -fvisibility=hidden the type says so itself (`struct EVC_API hit`). A program that loads plug-ins by dlopen is linked
 * with -rdynamic (CMake: ENABLE_EXPORTS); otherwise a plug-in has an on_handler_exception of its own, and other keys
 * but for types with an `event_key`. Types that cross a plug-in loaded with RTLD_LOCAL, or one that is to be unloaded
 * (compile it with -fno-gnu-unique; reclaim.h says when it may be), and types that C dispatches too, give themselves an
 * `event_key`. A class inherits it, and with it the handlers of its base's events, which would take one event for the
 * other: if its base has one, it declares its own. A type that Swift dispatches has the key that
 * `EventCentral.cKey(of:)` returns: use C with it.
 */
template <class Event> uint64_t key_of() noexcept
{
	static_assert(std::is_same_v<Event, std::remove_cv_t<std::remove_reference_t<Event>>>,
		      "an event type is named without const, volatile and &: the exact type is what counts");
	return key_detail::key_of<Event>::value();
}

/*
 * Two translation units of one program may differ in exceptions; their functions then have different names. What both
 * must share stands above: an event that one of them dispatches has its key in the other.
 */
#if defined(__cpp_exceptions)
#define EVENTCORE_TRY try
#define EVENTCORE_CATCH(code) catch (...) code
inline namespace with_exceptions {
#else
#define EVENTCORE_TRY
#define EVENTCORE_CATCH(code)
inline namespace without_exceptions {
#endif

namespace detail {
/* Calls a function of the user's. What it throws ends here. Without `detail::` a `call` of the user's may be found. */
template <class Function, class... Arguments> void call(Function &function, Arguments &&...arguments) noexcept
{
	EVENTCORE_TRY { static_cast<void>(std::invoke(function, std::forward<Arguments>(arguments)...)); }
	EVENTCORE_CATCH({
		auto told = on_handler_exception.load(std::memory_order_acquire);

		if (told == nullptr)
			std::terminate();
		told(std::current_exception());
	})
}

/* The handler of one subscription; the mailbox frees it with itself. */
template <class Event, class Handler> struct entry {
	Handler handler;
	/* False: unsubscribed. Written by any thread, read by the consumer before each call (D6). */
	std::atomic<bool> active{ true };

	static bool deliver(void *context, void *payload, const evc_envelope *, bool) noexcept
	{
		auto *self = static_cast<entry *>(context);

		/* Acquire, pairs with ~subscription: what its thread did before. */
		if (self->active.load(std::memory_order_acquire))
			detail::call(self->handler, *static_cast<const Event *>(payload));
		return false;
	}
	static void drop(void *, void *payload) noexcept { static_cast<Event *>(payload)->~Event(); }
	static void finalize(void *context) noexcept { delete static_cast<entry *>(context); }
};
/* Gives a mailbox a handler, which it frees with itself. If this fails, the handler is freed at once. */
template <class Entry>
evc_status add(evc_mailbox *to, Entry *entry, void (*drop)(void *, void *), evc_subscription **out) noexcept
{
	evc_subscription_options options = {};

	if (entry == nullptr)
		return EVC_OUT_OF_MEMORY;
	options.size = sizeof(options);
	options.context = entry;
	options.deliver = Entry::deliver;
	options.drop = drop;
	options.finalize = Entry::finalize;
	const evc_status status = evc_mailbox_add_subscription(to, &options, out);

	if (status != EVC_OK)
		delete entry;
	return status;
}
/* The copies of one dispatch. If one of them throws, the others end, and nothing is dispatched. */
template <class Event> struct payloads {
	evc_dispatch dispatch;
	uint32_t count = 0;
	bool copying = false;

	void copy(const Event &event) noexcept(std::is_nothrow_copy_constructible_v<Event>)
	{
		copying = true;
		for (evc_envelope *at = dispatch.first; count < dispatch.payloads; count++, at = evc_dispatch_next(at))
			::new (evc_envelope_payload(at)) Event(event);
		copying = false;
	}
	~payloads()
	{
		if (!copying)
			return;
		for (evc_envelope *at = dispatch.first; count > 0; count--, at = evc_dispatch_next(at))
			static_cast<Event *>(evc_envelope_payload(at))->~Event();
		evc_dispatch_abandon(&dispatch);
	}
};
/*
 * What converts to std::chrono::nanoseconds, in nanoseconds: 0 if it is negative; EVC_FOREVER if it is a duration that
 * nanoseconds cannot hold, where the conversion overflows in silence.
 */
struct time_span {
	uint64_t nanoseconds = 0;

	constexpr time_span() noexcept = default;
	template <class Time, class = std::enable_if_t<std::is_convertible_v<const Time &, std::chrono::nanoseconds>>>
	constexpr time_span(const Time &time) noexcept : time_span(time, 0)
	{
	}

private:
	/* For a duration the first one is the better match. */
	template <class Count, class Unit>
	constexpr time_span(const std::chrono::duration<Count, Unit> &time, int) noexcept
	{
		/* The units are not those of Count, which may be a short. */
		using units = std::chrono::duration<int64_t, Unit>;
		using std::chrono::duration_cast;

		if (time >= duration_cast<units>(std::chrono::nanoseconds::max()))
			nanoseconds = EVC_FOREVER;
		else if (time > time.zero())
			nanoseconds = static_cast<uint64_t>(duration_cast<std::chrono::nanoseconds>(time).count());
	}
	constexpr time_span(std::chrono::nanoseconds time, long) noexcept : time_span(time, 0) {}
};
} // namespace detail

/**
 * A time of the steady clock in nanoseconds of evc_clock_now: 0 if it has passed, EVC_FOREVER for the last one,
 * `time_point::max()` of the steady clock's own unit: a later one overflows.
 */
inline uint64_t deadline_at(std::chrono::steady_clock::time_point time) noexcept
{
	const auto now = std::chrono::steady_clock::now();
	const uint64_t base = evc_clock_now();

	if (time <= now)
		return 0;
	if (time == time.max())
		return EVC_FOREVER;
	/* Both clocks are past their epochs: neither the difference nor the sum is too large. */
	return base + detail::time_span(time - now).nanoseconds;
}

/** A mailbox, shared by its copies. */
class mailbox {
public:
	mailbox() noexcept : mailbox(evc_mailbox_options{}) {}
	/** @param options as for evc_mailbox_create; its `size` is set here */
	explicit mailbox(evc_mailbox_options options) noexcept : has_clock_(options.clock != nullptr)
	{
		options.size = sizeof(options);
		status_ = evc_mailbox_create(&options, &mailbox_);
	}
	mailbox(const mailbox &other) noexcept
		: mailbox_(other.mailbox_), status_(other.status_), has_clock_(other.has_clock_)
	{
		if (mailbox_ != nullptr)
			evc_mailbox_retain(mailbox_);
	}
	mailbox &operator=(const mailbox &other) noexcept
	{
		mailbox copy(other);

		std::swap(mailbox_, copy.mailbox_);
		std::swap(status_, copy.status_);
		std::swap(has_clock_, copy.has_clock_);
		return *this;
	}
	~mailbox() { evc_mailbox_release(mailbox_); }

	explicit operator bool() const noexcept { return mailbox_ != nullptr; }
	evc_status status() const noexcept { return status_; }
	evc_mailbox *get() const noexcept { return mailbox_; }

	/** evc_mailbox_pump: EVC_EMPTY when nothing is left; EVC_NOT_PERMITTED while it has another consumer. */
	evc_status pump(uint64_t limit = EVC_FOREVER) noexcept
	{
		return mailbox_ != nullptr ? evc_mailbox_pump(mailbox_, limit) : status_;
	}
	/**
	 * evc_mailbox_pump_until: for a frame that has a budget. EVC_INVALID_ARGUMENT for a mailbox with a `clock` of its own,
	 * which takes times of that clock.
	 */
	evc_status pump_until(std::chrono::steady_clock::time_point time, uint64_t limit = EVC_FOREVER,
			      uint64_t *handled = nullptr) noexcept
	{
		/* A limit of 0 is refused. */
		return pump_until(deadline_at(time), has_clock_ ? 0 : limit, handled);
	}
	/** The same with a time of the mailbox's own clock. */
	evc_status pump_until(uint64_t time, uint64_t limit = EVC_FOREVER, uint64_t *handled = nullptr) noexcept
	{
		return mailbox_ != nullptr ? evc_mailbox_pump_until(mailbox_, limit, time, handled) : status_;
	}
	/** evc_mailbox_run: until the mailbox closes. */
	evc_status run() noexcept { return mailbox_ != nullptr ? evc_mailbox_run(mailbox_) : status_; }
	/** evc_mailbox_wait, with a std::chrono::duration, as all such times here. One of more than 292 years never ends. */
	evc_status wait(detail::time_span limit) noexcept
	{
		return mailbox_ != nullptr ? evc_mailbox_wait(mailbox_, limit.nanoseconds) : status_;
	}
	/** Later posts are refused; what waits is dropped. */
	void close() noexcept
	{
		if (mailbox_ != nullptr)
			evc_mailbox_close(mailbox_);
	}
	/** Later posts are refused; what waits is handled first. */
	void close_when_empty() noexcept
	{
		if (mailbox_ != nullptr)
			evc_mailbox_close_when_empty(mailbox_);
	}

private:
	evc_mailbox *mailbox_ = nullptr;
	evc_status status_ = EVC_INVALID_ARGUMENT;
	bool has_clock_;
};

/**
 * Keeps a handler subscribed, until it ends. After that no call of the handler begins; one may still be running on
 * another thread. The handler itself is freed with its mailbox. The router must outlive it.
 */
class subscription {
public:
	subscription() noexcept = default;
	subscription(subscription &&other) noexcept { std::swap(held_, other.held_); }
	subscription &operator=(subscription &&other) noexcept
	{
		subscription former(std::move(other));

		std::swap(held_, former.held_);
		return *this;
	}
	~subscription()
	{
		if (held_.active == nullptr)
			return;
		/* Release, pairs with entry::deliver. If the router lacks memory, its events come and are not handled. */
		held_.active->store(false, std::memory_order_release);
		(void)(evc_router_unsubscribe(held_.router, held_.key, held_.subscription) == EVC_OK);
		evc_mailbox_release(held_.mailbox);
	}
	explicit operator bool() const noexcept { return held_.active != nullptr; }
	evc_status status() const noexcept { return held_.status; }

private:
	friend class router;
	struct held {
		evc_router *router = nullptr;
		/* A reference, which keeps the handler. */
		evc_mailbox *mailbox = nullptr;
		evc_subscription *subscription = nullptr;
		std::atomic<bool> *active = nullptr;
		uint64_t key = 0;
		evc_status status = EVC_NOT_FOUND;
	} held_;
};

/** A router: which handlers get an event. */
class router {
public:
	router() noexcept { status_ = evc_router_create(&router_); }
	router(const router &) = delete;
	router &operator=(const router &) = delete;
	~router() { evc_router_destroy(router_); }

	explicit operator bool() const noexcept { return router_ != nullptr; }
	evc_status status() const noexcept { return status_; }
	evc_router *get() const noexcept { return router_; }

	/**
	 * Has `handler(const Event &)`, or a member function of Event without parameters, called for each Event that is
	 * dispatched from now on, by the consumer of `to`.
	 * Every subscription takes memory that is freed with the mailbox: subscribe once, not once a frame.
	 */
	template <class Event, class Handler>
	[[nodiscard]] subscription subscribe(const mailbox &to, Handler handler) noexcept
	{
		using entry = detail::entry<Event, Handler>;
		subscription made;

		static_assert(std::is_invocable_v<Handler &, const Event &>, "a handler takes (const Event &)");
		static_assert(std::is_nothrow_move_constructible_v<Handler>, "a handler moves without an exception");
		static_assert(alignof(Event) <= EVC_ALIGNMENT_MAX, "an event is aligned to 4,096 bytes at most");
		if (!*this || !to) {
			made.held_.status = !*this ? status_ : to.status();
			return made;
		}
		auto *context = new (std::nothrow) entry{ std::move(handler) };
		made.held_.status = detail::add(to.get(), context,
						std::is_trivially_destructible_v<Event> ? nullptr : entry::drop,
						&made.held_.subscription);
		if (made.held_.status != EVC_OK)
			return made;
		/* If this fails, the handler waits for its mailbox's end, which calls `finalize`. */
		made.held_.status = evc_router_subscribe(router_, key_of<Event>(), made.held_.subscription, 0, false);
		if (made.held_.status != EVC_OK)
			return made;
		evc_mailbox_retain(to.get());
		made.held_.router = router_;
		made.held_.mailbox = to.get();
		made.held_.active = &context->active;
		made.held_.key = key_of<Event>();
		return made;
	}

	/**
	 * Dispatches an event: a copy for each receiver, or one in a box for all of them if it is large. The handlers
	 * are those of the exact type Event (D11).
	 *
	 * @param receivers receives how many accepted it; may be nullptr
	 * @return EVC_OK also if there is no receiver; EVC_OUT_OF_MEMORY: no receiver got anything
	 *
	 * If a copy throws, no receiver gets anything, and the exception goes to the caller.
	 */
	template <class Event>
	[[nodiscard]] evc_status dispatch(const Event &event, evc_lane lane = EVC_LANE_QUEUE_NORMAL,
					  uint32_t *receivers = nullptr) noexcept(std::is_nothrow_copy_constructible_v<Event>)
	{
		static_assert(std::is_copy_constructible_v<Event>, "an event can be copied: each receiver gets a copy");
		if (!*this)
			return status_;
		if constexpr (std::is_trivially_copyable_v<Event>) {
			return evc_dispatch_bytes(router_, key_of<Event>(), lane, std::addressof(event), sizeof(Event),
						  alignof(Event), receivers);
		} else {
			detail::payloads<Event> made;
			const evc_status status = evc_dispatch_begin(router_, key_of<Event>(), lane, sizeof(Event),
								     alignof(Event), 1, &made.dispatch);

			if (status != EVC_OK)
				return status;
			made.copy(event);
			const uint32_t accepted = evc_dispatch_commit(&made.dispatch);

			if (receivers != nullptr)
				*receivers = accepted;
			return EVC_OK;
		}
	}

private:
	evc_router *router_ = nullptr;
	evc_status status_ = EVC_INVALID_ARGUMENT;
};

/**
 * A thread that consumes a mailbox. Its end closes the mailbox, which drops what waits, and joins the thread. In a handler
 * on the thread itself it does not wait: the thread ends by itself after that handler.
 */
class thread {
public:
	/** @param options as for evc_thread_start; its `size` is set here */
	explicit thread(const mailbox &of, evc_thread_options options = {}) noexcept
	{
		options.size = sizeof(options);
		status_ = of ? evc_thread_start(&options, of.get(), &thread_) : of.status();
	}
	thread(const thread &) = delete;
	thread &operator=(const thread &) = delete;
	~thread()
	{
		if (thread_ == nullptr)
			return;
		evc_thread_cancel(thread_);
		if (join() != EVC_OK)
			(void)(evc_thread_detach(thread_) == EVC_OK);
	}
	explicit operator bool() const noexcept { return thread_ != nullptr; }
	evc_status status() const noexcept { return status_; }
	/** Waits for the thread's end, without closing its mailbox. EVC_NOT_PERMITTED on the thread itself. */
	evc_status join() noexcept
	{
		const evc_status status = thread_ != nullptr ? evc_thread_join(thread_) : status_;

		if (status == EVC_OK)
			thread_ = nullptr;
		return status;
	}

private:
	evc_thread *thread_ = nullptr;
	evc_status status_ = EVC_INVALID_ARGUMENT;
};

namespace detail {
/* What a timer calls; the scheduler frees it after the last call, or with a timer that will not fire. */
template <class Function> struct timed {
	Function function;
	/* 0: it fires once. */
	uint64_t period;

	static uint64_t fire(void *context, uint64_t deadline) noexcept
	{
		auto *self = static_cast<timed *>(context);

		detail::call(self->function);
		if (self->period != 0)
			return self->period < EVC_FOREVER - deadline ? deadline + self->period : EVC_FOREVER;
		delete self;
		return 0;
	}
	static void drop(void *context) noexcept { delete static_cast<timed *>(context); }
	static constexpr evc_timer_ops ops = { fire, drop, true };
};
} // namespace detail

/**
 * Keeps a timer, until it ends: then no further call of its function begins; one may still be running on the
 * scheduler's thread. It keeps the scheduler's memory, but does not keep it open.
 */
class timer {
public:
	timer() noexcept = default;
	timer(timer &&other) noexcept { swap(other); }
	timer &operator=(timer &&other) noexcept
	{
		timer former(std::move(other));

		swap(former);
		return *this;
	}
	~timer() { cancel(); }
	/** False if it was not set, was cancelled or detached. It stays true when the timer has fired. */
	explicit operator bool() const noexcept { return scheduler_.load(std::memory_order_relaxed) != nullptr; }
	evc_status status() const noexcept { return held_.status; }
	/**
	 * EVC_OK: in time. EVC_TIMED_OUT: it is firing, for the last time. EVC_NOT_FOUND: it has fired, or was cancelled,
	 * detached or dropped before, or another call is about to cancel it. Threads: any, several at once, also in the
	 * function itself; none while the timer ends, or gets another one.
	 */
	evc_status cancel() noexcept
	{
		evc_scheduler *const scheduler = scheduler_.exchange(nullptr, std::memory_order_relaxed);

		if (scheduler == nullptr)
			return held_.status == EVC_OK ? EVC_NOT_FOUND : held_.status;
		const evc_status status = evc_scheduler_cancel(scheduler, held_.id);
		/* The end of the function may delete this timer. */
		if (status == EVC_OK)
			held_.drop(held_.context);
		evc_scheduler_release(scheduler);
		return status;
	}
	/** Lets the timer fire without this object. Threads: as for `cancel`. */
	void detach() noexcept
	{
		if (evc_scheduler *const scheduler = scheduler_.exchange(nullptr, std::memory_order_relaxed))
			evc_scheduler_release(scheduler);
	}

private:
	friend class scheduler;
	/* Of timers that no other thread uses. */
	void swap(timer &other) noexcept
	{
		evc_scheduler *const scheduler = scheduler_.load(std::memory_order_relaxed);

		scheduler_.store(other.scheduler_.load(std::memory_order_relaxed), std::memory_order_relaxed);
		other.scheduler_.store(scheduler, std::memory_order_relaxed);
		std::swap(held_, other.held_);
	}
	/* A reference, which one `cancel` or `detach` takes. Relaxed: who shares a timer has ordered what is in it. */
	std::atomic<evc_scheduler *> scheduler_{ nullptr };
	struct held {
		uint64_t id = 0;
		/* The timer's, unless it was cancelled in time. */
		void *context = nullptr;
		void (*drop)(void *) = nullptr;
		evc_status status = EVC_NOT_FOUND;
	} held_;
};

/**
 * Calls functions at given times: on a thread of its own, or, if its options say `driven`, in `run_due`. Its end drops
 * the timers that are left, and returns when no function of theirs runs any more, unless one of them ends it. Of a
 * driven one it does not wait for another thread that is in `run_due`, which then drops them.
 */
class scheduler {
public:
	scheduler() noexcept : scheduler(evc_scheduler_options{}) {}
	/** @param options as for evc_scheduler_create; its `size` is set here */
	explicit scheduler(evc_scheduler_options options) noexcept
	{
		options.size = sizeof(options);
		if (options.clock != nullptr)
			clock_ = *options.clock;
		status_ = evc_scheduler_create(&options, &scheduler_);
	}
	scheduler(const scheduler &) = delete;
	scheduler &operator=(const scheduler &) = delete;
	~scheduler()
	{
		if (scheduler_ == nullptr)
			return;
		evc_scheduler_close(scheduler_);
		(void)(evc_scheduler_join(scheduler_) == EVC_OK);
		evc_scheduler_release(scheduler_);
	}
	explicit operator bool() const noexcept { return scheduler_ != nullptr; }
	evc_status status() const noexcept { return status_; }
	evc_scheduler *get() const noexcept { return scheduler_; }
	/** The time on the scheduler's clock, in nanoseconds. */
	uint64_t now() const noexcept { return clock_.now != nullptr ? clock_.now(clock_.context) : evc_clock_now(); }

	/**
	 * Has `function()` called at a time of the scheduler's clock, and after each `period` from then on; 0: once. A time
	 * that has passed means at once, and the periods begin now. Periods that are missed later, because a function took
	 * too long, are caught up, one call each. It must not wait: later timers would wait too.
	 */
	template <class Function>
	[[nodiscard]] timer at(uint64_t deadline, Function function, detail::time_span period = {}) noexcept
	{
		using timed = detail::timed<Function>;
		timer made;

		static_assert(std::is_invocable_v<Function &>, "a timer's function takes nothing");
		static_assert(std::is_nothrow_move_constructible_v<Function>, "a function moves without an exception");
		made.held_.status = status_;
		if (scheduler_ == nullptr)
			return made;
		/* Not from a time long ago, such as the 0 of deadline_at: each period since then would be caught up. */
		if (const uint64_t earliest = period.nanoseconds > 0 ? now() : 0; deadline < earliest)
			deadline = earliest;
		auto *context = new (std::nothrow) timed{ std::move(function), period.nanoseconds };
		made.held_.status = EVC_OUT_OF_MEMORY;
		if (context == nullptr)
			return made;
		/* First, since the timer may fire at once. */
		evc_scheduler_retain(scheduler_);
		made.held_.status = evc_scheduler_add(scheduler_, deadline, &timed::ops, context, &made.held_.id);
		if (made.held_.status != EVC_OK) {
			evc_scheduler_release(scheduler_);
			delete context;
			return made;
		}
		made.scheduler_.store(scheduler_, std::memory_order_relaxed);
		made.held_.context = context;
		made.held_.drop = timed::drop;
		return made;
	}
	/** The same after a delay, and after each `period` from then on. */
	template <class Function>
	[[nodiscard]] timer after(detail::time_span delay, Function function, detail::time_span period = {}) noexcept
	{
		const uint64_t base = now(), left = delay.nanoseconds;

		return at(left < EVC_FOREVER - base ? base + left : EVC_FOREVER, std::move(function), period);
	}
	/**
	 * Has an event dispatched after a delay, and after each `period` from then on. Event must be movable without an
	 * exception, and `to` outlive the timer. Without memory at that time the event is lost. What a copy of it throws
	 * then, such as std::bad_alloc, has no caller to go to: `on_handler_exception` gets it.
	 */
	template <class Event>
	[[nodiscard]] timer dispatch_after(detail::time_span delay, router &to, Event event,
					   evc_lane lane = EVC_LANE_QUEUE_NORMAL,
					   detail::time_span period = {}) noexcept
	{
		static_assert(std::is_nothrow_move_constructible_v<Event>,
			      "an event that is dispatched later moves without an exception");
		/* A timer has nobody to tell. */
		return after(delay, [&to, event = std::move(event), lane] { (void)(to.dispatch(event, lane) == EVC_OK); },
			     period);
	}
	/** Of a driven scheduler: evc_scheduler_run_due with the time of its clock. `next`: the earliest deadline left. */
	size_t run_due(uint64_t *next = nullptr) noexcept
	{
		if (next != nullptr)
			*next = EVC_FOREVER;
		if (scheduler_ == nullptr)
			return 0;
		return evc_scheduler_run_due(scheduler_, now(), next);
	}

private:
	evc_scheduler *scheduler_ = nullptr;
	evc_scheduler_clock clock_ = {};
	evc_status status_ = EVC_INVALID_ARGUMENT;
};

namespace detail {
/* A handler of a node. The tree frees it when no walk holds it any more. */
struct node_entry {
	/* Returns whether the event ends with it. */
	bool (*handle)(node_entry *, const void *) noexcept;
	void (*end)(node_entry *) noexcept;
};
template <class Event, class Handler> struct typed_node_entry : node_entry {
	Handler handler;

	explicit typed_node_entry(Handler &&from) noexcept : node_entry{ handle_it, end_it }, handler(std::move(from)) {}
	static bool handle_it(node_entry *self, const void *event) noexcept
	{
		using returned = std::invoke_result_t<Handler &, const Event &>;
		using answer = std::remove_cv_t<std::remove_reference_t<returned>>;
		auto &handler = static_cast<typed_node_entry *>(self)->handler;
		bool ends = false;

		if constexpr (std::is_same_v<answer, bool>) {
			auto answering = [&](const Event &raised) { ends = std::invoke(handler, raised); };

			detail::call(answering, *static_cast<const Event *>(event));
		} else {
			detail::call(handler, *static_cast<const Event *>(event));
		}
		return ends;
	}
	static void end_it(node_entry *self) noexcept { delete static_cast<typed_node_entry *>(self); }
};
} // namespace detail

/** Keeps a handler at its node, until it ends: then no call of it begins; one may still be running elsewhere (D6). */
class node_handler {
public:
	node_handler() noexcept = default;
	node_handler(node_handler &&other) noexcept { std::swap(held_, other.held_); }
	node_handler &operator=(node_handler &&other) noexcept
	{
		node_handler former(std::move(other));

		std::swap(held_, former.held_);
		return *this;
	}
	~node_handler()
	{
		if (held_.handler == nullptr)
			return;
		(void)evc_handler_remove(held_.handler);
		evc_handler_drop(held_.handler);
	}
	explicit operator bool() const noexcept { return held_.handler != nullptr; }
	evc_status status() const noexcept { return held_.status; }
	/** evc_handler_remove_and_wait: EVC_NOT_PERMITTED inside the handler itself. */
	evc_status remove_and_wait() noexcept
	{
		return held_.handler != nullptr ? evc_handler_remove_and_wait(held_.handler) : held_.status;
	}

private:
	friend class node;
	struct held {
		evc_handler *handler = nullptr;
		evc_status status = EVC_NOT_FOUND;
	} held_;
};

/** A node of a tree. Its end takes it out of the tree, with its handlers, and leaves its children without a parent. */
class node {
public:
	node() noexcept
	{
		evc_node_options options = {};

		options.size = sizeof(options);
		options.release = release;
		status_.store(evc_node_create(&options, &node_), std::memory_order_relaxed);
	}
	/**
	 * Makes it the last child of a node; nullptr: of none. If that fails, a later `attach` makes up for it. It takes a
	 * pointer, since with a reference it would be what a lambda's capture by value calls.
	 */
	explicit node(node *parent) noexcept : node()
	{
		if (parent != nullptr)
			status_.store(attach(*parent), std::memory_order_relaxed);
	}
	node(const node &) = delete; // a child is node(&parent)
	node &operator=(const node &) = delete;
	~node()
	{
		if (node_ != nullptr)
			evc_node_end(node_);
	}
	explicit operator bool() const noexcept { return node_ != nullptr && status() == EVC_OK; }
	evc_status status() const noexcept { return status_.load(std::memory_order_relaxed); }
	evc_node *get() const noexcept { return node_; }

	/** evc_node_attach: EVC_NOT_PERMITTED if that would make a cycle. */
	evc_status attach(node &parent) noexcept
	{
		if (node_ == nullptr || parent.node_ == nullptr)
			return node_ == nullptr ? status() : parent.status();
		const evc_status status = evc_node_attach(node_, parent.node_, nullptr);

		/* A failure leaves it where it is. */
		if (status == EVC_OK)
			status_.store(EVC_OK, std::memory_order_relaxed);
		return status;
	}
	void detach() noexcept
	{
		if (node_ != nullptr)
			evc_node_detach(node_);
	}

	/**
	 * Has `handler(const Event &)`, or a member function of Event without parameters, called for each Event that comes
	 * by here in one of the phases. If it returns a bool, or a reference to one, true ends the event's way; so does
	 * EVC_HANDLER_CONSUME.
	 *
	 * @param modes evc_handler_mode bits, at least one phase
	 */
	template <class Event, class Handler> [[nodiscard]] node_handler on(unsigned modes, Handler handler) noexcept
	{
		using entry = detail::typed_node_entry<Event, Handler>;
		node_handler made;

		static_assert(std::is_invocable_v<Handler &, const Event &>, "a handler takes (const Event &)");
		static_assert(std::is_nothrow_move_constructible_v<Handler>, "a handler moves without an exception");
		made.held_.status = status();
		if (made.held_.status != EVC_OK)
			return made;
		auto *object = new (std::nothrow) entry(std::move(handler));
		made.held_.status = EVC_OUT_OF_MEMORY;
		if (object == nullptr)
			return made;
		/* The modes of the core are a byte, to which others would be cut. */
		made.held_.status = EVC_INVALID_ARGUMENT;
		if (modes <= UINT8_MAX)
			made.held_.status = evc_node_add_handler(node_, key_of<Event>(), static_cast<uint8_t>(modes),
								 static_cast<detail::node_entry *>(object),
								 &made.held_.handler);
		if (made.held_.status != EVC_OK)
			delete object;
		return made;
	}

	/**
	 * Sends an event up to the root and then down to all nodes, or as `scope` says, and calls the handlers on the way,
	 * on this thread.
	 *
	 * @param scope evc_walk_scope bits, at least one phase
	 * @param ended receives whether a handler ended its way; may be nullptr
	 * @return EVC_OK also if there is no handler; EVC_OUT_OF_MEMORY: further handlers were not found
	 */
	template <class Event>
	[[nodiscard]] evc_status raise(const Event &event, unsigned scope = EVC_WALK_RAISE | EVC_WALK_PROPAGATE,
				       bool *ended = nullptr) noexcept
	{
		bool has_ended = false;
		evc_walk *walk;
		evc_status status = this->status();

		if (status == EVC_OK)
			status = evc_walk_begin(node_, key_of<Event>(), scope, &walk);
		if (status == EVC_OK) {
			do {
				for (uint32_t i = 0; i < walk->count && !has_ended; i++)
					if (evc_walk_will_call(walk, i)) {
						auto *entry = static_cast<detail::node_entry *>(walk->objects[i]);

						has_ended = entry->handle(entry, std::addressof(event)) ||
							    (evc_handler_modes(walk->handlers[i]) & EVC_HANDLER_CONSUME) != 0;
					}
			} while (!has_ended && (status = evc_walk_next(walk)) == EVC_OK);
			evc_walk_end(walk);
		}
		if (ended != nullptr)
			*ended = has_ended;
		return status == EVC_EMPTY ? EVC_OK : status;
	}
	/** Sends an event down to this node and all nodes below it. All else is as for `raise`. */
	template <class Event> [[nodiscard]] evc_status propagate(const Event &event, bool *ended = nullptr) noexcept
	{
		return raise(event, EVC_WALK_PROPAGATE | EVC_WALK_FROM_HERE, ended);
	}

private:
	static void release(void *object) noexcept
	{
		auto *entry = static_cast<detail::node_entry *>(object);

		entry->end(entry);
	}
	evc_node *node_ = nullptr;
	/* Written by `attach`, beside calls on other threads. Relaxed: the tree orders what they do there. */
	std::atomic<evc_status> status_{ EVC_INVALID_ARGUMENT };
};

/** The receivers of a balancer, as its chooser sees them: during that call. */
class balancer_choice {
public:
	/** How many there are, at least 2, in the order in which they were added. */
	uint32_t count() const noexcept { return choice_->count; }
	/** How many events wait for one of them, or are being handled there. */
	uint64_t load(uint32_t index) const noexcept;
	/** The first one with the least to do. */
	uint32_t least_loaded() const noexcept
	{
		uint32_t best = 0;

		for (uint32_t i = 1; i < count(); i++)
			if (load(i) < load(best))
				best = i;
		return best;
	}

private:
	template <class> friend class balancer;
	explicit balancer_choice(const evc_balancer_choice *choice) noexcept : choice_(choice) {}
	const evc_balancer_choice *choice_;
};

namespace detail {
/* A receiver of a balancer: the handler, and what was promised to it and is done. */
struct measured {
	evc_load load = {};
	/* Written by the consumer, read by choosers. */
	std::atomic<uint64_t> done{ 0 };
};
template <class Event, class Handler> struct balanced_entry : measured {
	entry<Event, Handler> handler;

	explicit balanced_entry(Handler &&from) noexcept : handler{ std::move(from) } {}
	static bool deliver(void *context, void *payload, const evc_envelope *envelope, bool owned) noexcept
	{
		auto *self = static_cast<balanced_entry *>(context);

		entry<Event, Handler>::deliver(&self->handler, payload, envelope, owned);
		/* Release, pairs with balancer_choice::load. */
		self->done.store(self->done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
		return false;
	}
	static void finalize(void *context) noexcept { delete static_cast<balanced_entry *>(context); }
};
} // namespace detail

inline uint64_t balancer_choice::load(uint32_t index) const noexcept
{
	/* The first member of a type with standard layout. */
	const auto *measured = reinterpret_cast<const detail::measured *>(evc_balancer_choice_load(choice_, index));
	/* Acquire, and first: what is done was promised. Less may be promised if a policy has ended events meanwhile. */
	const uint64_t done = measured->done.load(std::memory_order_acquire);
	const uint64_t promised = evc_load_promised(&measured->load);

	return promised > done ? promised - done : 0;
}

/**
 * Keeps a receiver of a balancer, until it ends. After that no call of its handler begins, also for events that wait;
 * one may still be running on another thread. The handler itself is freed with its mailbox.
 */
class balancer_member {
public:
	balancer_member() noexcept = default;
	balancer_member(balancer_member &&other) noexcept { std::swap(held_, other.held_); }
	balancer_member &operator=(balancer_member &&other) noexcept
	{
		balancer_member former(std::move(other));

		std::swap(held_, former.held_);
		return *this;
	}
	~balancer_member()
	{
		if (held_.balancer == nullptr)
			return;
		/* From now on nothing is promised to it, also by a dispatch that has found it; and if there is no memory. */
		(void)evc_load_retire(held_.load);
		(void)(evc_balancer_remove(held_.balancer, held_.subscription) == EVC_OK);
		/* Release, pairs with entry::deliver. */
		held_.active->store(false, std::memory_order_release);
		evc_mailbox_release(held_.mailbox);
		evc_balancer_release(held_.balancer);
	}
	explicit operator bool() const noexcept { return held_.balancer != nullptr; }
	evc_status status() const noexcept { return held_.status; }

private:
	template <class> friend class balancer;
	struct held {
		/* References, both. */
		evc_balancer *balancer = nullptr;
		evc_mailbox *mailbox = nullptr;
		evc_subscription *subscription = nullptr;
		std::atomic<bool> *active = nullptr;
		evc_load *load = nullptr;
		evc_status status = EVC_NOT_FOUND;
	} held_;
};

/** Several mailboxes as one receiver in a router: each Event goes to exactly one of them. */
template <class Event> class balancer {
public:
	/** Round robin. The router must outlive it. */
	explicit balancer(router &of) noexcept : balancer(of, evc_balancer_options{}, false) {}
	/**
	 * @param chooser `uint32_t chooser(const Event &, const balancer_choice &)` returns the index of the receiver. Every
	 *        thread that dispatches calls it, several at once; it must not wait.
	 */
	template <class Chooser> balancer(router &of, Chooser chooser) noexcept : balancer(of, options(std::move(chooser)), true)
	{
	}
	balancer(const balancer &) = delete;
	balancer &operator=(const balancer &) = delete;
	~balancer()
	{
		if (balancer_ == nullptr)
			return;
		if (status_ == EVC_OK)
			(void)(evc_router_unsubscribe(router_, key_of<Event>(), evc_balancer_subscription(balancer_)) == EVC_OK);
		evc_balancer_release(balancer_);
	}
	explicit operator bool() const noexcept { return status_ == EVC_OK; }
	evc_status status() const noexcept { return status_; }
	/**
	 * For the functions of C, but for evc_balancer_add: a load there lies within an object of this class, which
	 * `balancer_choice` reads. Without a chooser any load will do.
	 */
	evc_balancer *get() const noexcept { return balancer_; }

	/**
	 * Adds a receiver: `handler(const Event &)`, or a member function of Event without parameters, is called by the
	 * consumer of `to` for its share of the events.
	 */
	template <class Handler> [[nodiscard]] balancer_member add(const mailbox &to, Handler handler) noexcept
	{
		using entry = detail::balanced_entry<Event, Handler>;
		balancer_member made;

		static_assert(std::is_invocable_v<Handler &, const Event &>, "a handler takes (const Event &)");
		static_assert(std::is_nothrow_move_constructible_v<Handler>, "a handler moves without an exception");
		made.held_.status = !*this ? status_ : to.status();
		if (made.held_.status != EVC_OK)
			return made;
		auto *context = new (std::nothrow) entry(std::move(handler));
		made.held_.status = detail::add(to.get(), context, drop, &made.held_.subscription);
		if (made.held_.status != EVC_OK)
			return made;
		/* If this fails, the handler waits for its mailbox's end, which calls `finalize`. */
		made.held_.status = evc_balancer_add(balancer_, made.held_.subscription, 0, false, &context->load);
		if (made.held_.status != EVC_OK)
			return made;
		evc_mailbox_retain(to.get());
		evc_balancer_retain(balancer_);
		made.held_.mailbox = to.get();
		made.held_.balancer = balancer_;
		made.held_.active = &context->handler.active;
		made.held_.load = &context->load;
		return made;
	}

private:
	/* NULL lets the core copy a payload as bytes. */
	static constexpr void (*drop)(void *, void *) =
		std::is_trivially_copyable_v<Event> ? nullptr : static_cast<void (*)(void *, void *)>(
			[](void *, void *payload) { static_cast<Event *>(payload)->~Event(); });

	template <class Chooser> static evc_balancer_options options(Chooser &&chooser) noexcept
	{
		static_assert(std::is_invocable_r_v<uint32_t, Chooser &, const Event &, const balancer_choice &>,
			      "a chooser takes (const Event &, const balancer_choice &) and returns an index");
		static_assert(std::is_nothrow_move_constructible_v<Chooser>, "a chooser moves without an exception");
		evc_balancer_options options = {};

		options.context = ::new (std::nothrow) Chooser(std::move(chooser));
		options.choose = [](void *context, const evc_balancer_choice *choice) -> uint32_t {
			auto *payload = static_cast<const Event *>(evc_envelope_payload(choice->envelope));
			uint32_t index = 0;
			auto choosing = [&](Chooser &choose) {
				index = std::invoke(choose, *payload, balancer_choice(choice));
			};

			detail::call(choosing, *static_cast<Chooser *>(context));
			return index;
		};
		options.finalize = [](void *context) { ::delete static_cast<Chooser *>(context); };
		return options;
	}
	balancer(router &of, evc_balancer_options options, bool has_chooser) noexcept
		: router_(of.get()), status_(has_chooser && options.context == nullptr ? EVC_OUT_OF_MEMORY : of.status())
	{
		options.size = sizeof(options);
		options.drop = drop;
		if (status_ == EVC_OK)
			status_ = evc_balancer_create(&options, &balancer_);
		if (balancer_ == nullptr && options.finalize != nullptr)
			options.finalize(options.context);
		if (status_ == EVC_OK)
			status_ = evc_router_subscribe(router_, key_of<Event>(), evc_balancer_subscription(balancer_), 0, false);
	}
	evc_router *router_;
	evc_balancer *balancer_ = nullptr;
	evc_status status_;
};

} // namespace with_exceptions, without_exceptions
} // namespace eventcore

#undef EVENTCORE_TRY
#undef EVENTCORE_CATCH
#endif
