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
 * Threads, order and progress are those of the C functions. The C objects are `get()`.
 */
#ifndef EVENTCORE_HPP
#define EVENTCORE_HPP

#include "eventcore.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace eventcore {

/* Two translation units of one program may differ in exceptions; their functions then have different names. */
#if defined(__cpp_exceptions)
#define EVENTCORE_TRY try
#define EVENTCORE_CATCH(code) catch (...) code
inline namespace with_exceptions {
#else
#define EVENTCORE_TRY
#define EVENTCORE_CATCH(code)
inline namespace without_exceptions {
#endif

/**
 * Called on the consumer's thread with what a handler has thrown; the active exception is that one. nullptr, as it
 * begins: std::terminate. One for the process, or for each library that hides its symbols from others.
 */
EVC_API inline std::atomic<void (*)(std::exception_ptr)> on_handler_exception{ nullptr };

namespace detail {
template <class Event, class = void> struct key_of {
	EVC_API static inline char anchor = 0;
	static uint64_t value() noexcept { return reinterpret_cast<uintptr_t>(&anchor); }
};
template <class Event> struct key_of<Event, std::void_t<decltype(Event::event_key)>> {
	static_assert(Event::event_key > 0 && Event::event_key < 4096, "an event_key is from 1 to 4095");
	static uint64_t value() noexcept { return Event::event_key; }
};

/* Calls a function of the user's. What it throws ends here. */
template <class Function, class... Arguments> void call(Function &function, Arguments &&...arguments) noexcept
{
	EVENTCORE_TRY { function(std::forward<Arguments>(arguments)...); }
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
			call(self->handler, *static_cast<const Event *>(payload));
		return false;
	}
	static void drop(void *, void *payload) noexcept { static_cast<Event *>(payload)->~Event(); }
	static void finalize(void *context) noexcept { delete static_cast<entry *>(context); }
};
/* The copies of one dispatch. If one of them throws, the others end, and nothing is dispatched. */
template <class Event> struct payloads {
	evc_dispatch dispatch;
	uint32_t count = 0;
	bool copying = false;

	void copy(const Event &event) noexcept(std::is_nothrow_copy_constructible_v<Event>)
	{
		copying = true;
		for (evc_envelope *at = dispatch.first; count < dispatch.payloads; count++, at = evc_dispatch_next(at))
			new (evc_envelope_payload(at)) Event(event);
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
} // namespace detail

/**
 * The key of an event type: `Event::event_key`, from 1 to 4095, if the type has one; otherwise the address of a
 * variable that all libraries of the process share as long as they do not hide it. Types that cross a plug-in loaded
 * with RTLD_LOCAL, or one that is to be unloaded (compile it with -fno-gnu-unique), and types that C dispatches too,
 * give themselves an `event_key`. A type that Swift dispatches has the key that `EventCentral.cKey(of:)` returns: use
 * the functions of C with it.
 */
template <class Event> uint64_t key_of() noexcept
{
	return detail::key_of<Event>::value();
}

/** A time of the steady clock in nanoseconds of evc_clock_now: 0 if it has passed, EVC_FOREVER if it never comes. */
inline uint64_t deadline_at(std::chrono::steady_clock::time_point time) noexcept
{
	const auto now = std::chrono::steady_clock::now();
	const uint64_t base = evc_clock_now();

	if (time <= now)
		return 0;
	/* Positive: the steady clock is past its epoch. */
	const auto left = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time - now).count());
	return left < EVC_FOREVER - base ? base + left : EVC_FOREVER;
}

/** A mailbox, shared by its copies. */
class mailbox {
public:
	/** @param options as for evc_mailbox_create; its `size` is set here */
	explicit mailbox(evc_mailbox_options options = {}) noexcept
	{
		options.size = sizeof(options);
		status_ = evc_mailbox_create(&options, &mailbox_);
	}
	mailbox(const mailbox &other) noexcept : mailbox_(other.mailbox_), status_(other.status_)
	{
		if (mailbox_ != nullptr)
			evc_mailbox_retain(mailbox_);
	}
	mailbox &operator=(const mailbox &other) noexcept
	{
		mailbox copy(other);

		std::swap(mailbox_, copy.mailbox_);
		std::swap(status_, copy.status_);
		return *this;
	}
	~mailbox() { evc_mailbox_release(mailbox_); }

	explicit operator bool() const noexcept { return mailbox_ != nullptr; }
	evc_status status() const noexcept { return status_; }
	evc_mailbox *get() const noexcept { return mailbox_; }

	/** evc_mailbox_pump: EVC_EMPTY when nothing is left. */
	evc_status pump(uint64_t limit = EVC_FOREVER) noexcept
	{
		return mailbox_ != nullptr ? evc_mailbox_pump(mailbox_, limit) : status_;
	}
	/** evc_mailbox_pump_until: for a frame that has a budget. */
	evc_status pump_until(std::chrono::steady_clock::time_point time, uint64_t limit = EVC_FOREVER,
			      uint64_t *handled = nullptr) noexcept
	{
		return mailbox_ != nullptr ? evc_mailbox_pump_until(mailbox_, limit, deadline_at(time), handled) : status_;
	}
	/** evc_mailbox_run: until the mailbox closes. */
	evc_status run() noexcept { return mailbox_ != nullptr ? evc_mailbox_run(mailbox_) : status_; }
	/** evc_mailbox_wait. */
	evc_status wait(std::chrono::nanoseconds limit) noexcept
	{
		const auto count = limit.count() > 0 ? static_cast<uint64_t>(limit.count()) : 0;

		return mailbox_ != nullptr ? evc_mailbox_wait(mailbox_, count) : status_;
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
};

/**
 * Keeps a handler subscribed, until it ends. After that no call of the handler begins; one may still be running on
 * another thread. The handler itself is freed with its mailbox. The router must outlive it.
 */
class subscription {
public:
	subscription() noexcept = default;
	subscription(subscription &&other) noexcept { swap(other); }
	subscription &operator=(subscription &&other) noexcept
	{
		subscription former(std::move(other));

		swap(former);
		return *this;
	}
	~subscription()
	{
		if (active_ == nullptr)
			return;
		/* Release, pairs with entry::deliver. If the router lacks memory, its events come and are not handled. */
		active_->store(false, std::memory_order_release);
		(void)(evc_router_unsubscribe(router_, key_, subscription_) == EVC_OK);
		evc_mailbox_release(mailbox_);
	}
	explicit operator bool() const noexcept { return active_ != nullptr; }
	evc_status status() const noexcept { return status_; }

private:
	friend class router;
	void swap(subscription &other) noexcept
	{
		std::swap(router_, other.router_);
		std::swap(mailbox_, other.mailbox_);
		std::swap(subscription_, other.subscription_);
		std::swap(active_, other.active_);
		std::swap(key_, other.key_);
		std::swap(status_, other.status_);
	}
	evc_router *router_ = nullptr;
	/* A reference, which keeps the handler. */
	evc_mailbox *mailbox_ = nullptr;
	evc_subscription *subscription_ = nullptr;
	std::atomic<bool> *active_ = nullptr;
	uint64_t key_ = 0;
	evc_status status_ = EVC_NOT_FOUND;
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
	 * Has `handler(const Event &)` called for each Event that is dispatched from now on, by the consumer of `to`.
	 * Every subscription takes memory that is freed with the mailbox: subscribe once, not once a frame.
	 */
	template <class Event, class Handler>
	[[nodiscard]] subscription subscribe(const mailbox &to, Handler handler) noexcept
	{
		using entry = detail::entry<Event, Handler>;
		subscription made;
		evc_subscription_options options = {};

		static_assert(std::is_invocable_v<Handler &, const Event &>, "a handler takes (const Event &)");
		static_assert(std::is_nothrow_move_constructible_v<Handler>, "a handler moves without an exception");
		static_assert(alignof(Event) <= EVC_ALIGNMENT_MAX, "an event is aligned to 4,096 bytes at most");
		if (!*this || !to) {
			made.status_ = !*this ? status_ : to.status();
			return made;
		}
		auto *context = new (std::nothrow) entry{ std::move(handler) };
		if (context == nullptr) {
			made.status_ = EVC_OUT_OF_MEMORY;
			return made;
		}
		options.size = sizeof(options);
		options.context = context;
		options.deliver = entry::deliver;
		options.drop = std::is_trivially_destructible_v<Event> ? nullptr : entry::drop;
		options.finalize = entry::finalize;
		made.status_ = evc_mailbox_add_subscription(to.get(), &options, &made.subscription_);
		if (made.status_ != EVC_OK) {
			delete context;
			return made;
		}
		/* If this fails, the handler waits for its mailbox's end, which calls `finalize`. */
		made.status_ = evc_router_subscribe(router_, key_of<Event>(), made.subscription_, 0, false);
		if (made.status_ != EVC_OK)
			return made;
		evc_mailbox_retain(to.get());
		made.router_ = router_;
		made.mailbox_ = to.get();
		made.active_ = &context->active;
		made.key_ = key_of<Event>();
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
		if (!*this)
			return status_;
		if constexpr (std::is_trivially_copyable_v<Event>) {
			return evc_dispatch_bytes(router_, key_of<Event>(), lane, &event, sizeof(Event), alignof(Event),
						  receivers);
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

/** A thread that consumes a mailbox. Its end closes the mailbox, which drops what waits, and joins the thread. */
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
		(void)(join() == EVC_OK);
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

} // namespace with_exceptions, without_exceptions
} // namespace eventcore

#undef EVENTCORE_TRY
#undef EVENTCORE_CATCH
#endif
