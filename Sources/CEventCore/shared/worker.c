/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * A worker: a consumer of a shared mailbox and of its own, where it relies on no alarm. One file, though long:
 * each step of its take looks at both.
 */
#include "latest/latest.h"
#include "mailbox/mailbox_private.h"
#include "platform/allocator.h"
#include "platform/options.h"
#include "shared/shared_mailbox_private.h"

/* Finds a slot in `workers`. False if all are in use. */
static bool join(struct evc_shared_mailbox *shared, struct evc_worker *worker)
{
	unsigned slot = 0;

	pthread_mutex_lock(&shared->worker_mutex);
	while (slot < EVC_WORKERS_MAX && shared->workers[slot] != NULL)
		slot++;
	worker->slot = slot;
	if (slot < EVC_WORKERS_MAX)
		shared->workers[slot] = worker;
	pthread_mutex_unlock(&shared->worker_mutex);
	return slot < EVC_WORKERS_MAX;
}

/* Gives the worker's slot back, the first time; it takes and sleeps no more. */
static void part(struct evc_worker *worker)
{
	struct evc_shared_mailbox *shared = worker->shared;

	evc_worker_leave(worker);
	pthread_mutex_lock(&shared->worker_mutex);
	if (shared->workers[worker->slot] == worker) {
		shared->workers[worker->slot] = NULL;
		shared->taken_by_others += atomic_load_explicit(&worker->taken, memory_order_relaxed);
	}
	pthread_mutex_unlock(&shared->worker_mutex);
}

enum evc_status evc_worker_create(struct evc_shared_mailbox *shared,
				  const struct evc_mailbox_options *options,
				  struct evc_worker **out)
{
	struct evc_mailbox_options own;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_mailbox_options, options, block_ns);
	struct evc_worker *worker;

	if (shared == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	if (status != EVC_OK)
		return status;
	/* It waits for both mailboxes, and sleeps then, where a `wake` would leave it. Its own gets few events. */
	if (own.polled || own.wake != NULL || own.capacity != 0)
		return EVC_INVALID_ARGUMENT;
	worker = evc_allocate(sizeof(*worker), _Alignof(struct evc_worker));
	if (worker == NULL)
		return EVC_OUT_OF_MEMORY;
	*worker = (struct evc_worker){
		.shared = shared,
		.context = own.context,
	};
	/* It delivers by itself. */
	own.size = sizeof(own);
	own.batches = false;
	status = EVC_NOT_PERMITTED;
	if (join(shared, worker)) {
		status = evc_mailbox_create(&own, &worker->mailbox);
		if (status != EVC_OK)
			part(worker);
	}
	if (status != EVC_OK) {
		evc_deallocate(worker, sizeof(*worker), _Alignof(struct evc_worker));
		return status;
	}
	evc_shared_mailbox_retain(shared);
	*out = worker;
	return EVC_OK;
}

void evc_worker_destroy(struct evc_worker *worker)
{
	struct evc_shared_mailbox *shared;

	if (worker == NULL)
		return;
	shared = worker->shared;
	part(worker);
	/* It has no consumer any more: posts that others may still make are refused and dropped. */
	evc_mailbox_close(worker->mailbox);
	(void)evc_mailbox_end(worker->mailbox);
	evc_mailbox_release(worker->mailbox);
	evc_deallocate(worker, sizeof(*worker), _Alignof(struct evc_worker));
	evc_shared_mailbox_release(shared);
}

struct evc_mailbox *evc_worker_mailbox(struct evc_worker *worker)
{
	return worker->mailbox;
}

/* W8: it was woken for one post; if more waits, it wakes the next worker. */
static __attribute__((noinline)) void wake_next(struct evc_worker *worker)
{
	if (atomic_load_explicit(&worker->shared->attention, memory_order_relaxed) >=
		    EVC_SHARED_SLEEPER &&
	    evc_shared_has_some(worker->shared))
		evc_shared_wake_one(worker->shared);
}

/* Exchanges a taken token for its event; NULL if it stands for none. */
static __attribute__((noinline)) struct evc_envelope *event_of(struct evc_worker *worker,
							       struct evc_envelope *token)
{
	struct evc_envelope *event;

	if (!token->subscription->is_shared)
		return evc_mailbox_take_latest(worker->mailbox, token);
	event = evc_latest_take(token, worker->mailbox->returns);
	if (event == NULL)
		/* Release, pairs with evc_shared_mailbox_read_statistics. */
		atomic_fetch_add_explicit(&worker->shared->taken_empty, 1, memory_order_release);
	return event;
}

/* The next envelope or token; NULL: none, or the worker ends. `is_held`: from its own mailbox alone. */
static inline struct evc_envelope *next_of_any(struct evc_worker *worker, bool is_held, bool passes_on)
{
	struct evc_mailbox *mailbox = worker->mailbox;
	struct evc_shared_mailbox *shared = worker->shared;
	struct evc_envelope *envelope = NULL;
	bool takes_shared = !is_held;
	unsigned own;

	/* C3. Relaxed, as in evc_mailbox_next: if it is up, C4 acquires what the raises released. */
	if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0)) {
		/* Before `control`, which may take a while. */
		if (passes_on)
			wake_next(worker);
		if (evc_mailbox_attend(mailbox) & EVC_SIGNAL_CLOSE)
			return NULL;
		/* It retires when its own mailbox is empty. */
		takes_shared &= !evc_mailbox_is_closing(mailbox);
	}
	/* Relaxed: end_if_closed comes next and acquires. */
	if (evc_unlikely(!is_held && (atomic_load_explicit(&shared->attention, memory_order_relaxed) &
				      EVC_SHARED_DROP)))
		return NULL;
look:
	own = evc_mailbox_first(mailbox);
	/* W8: the take. */
	if (evc_likely(takes_shared)) {
		envelope = evc_shared_take(shared, own);
		if (envelope != NULL)
			/* Release, pairs with evc_shared_mailbox_read_statistics; only this thread writes it. */
			atomic_store_explicit(&worker->taken,
					      atomic_load_explicit(&worker->taken, memory_order_relaxed) + 1,
					      memory_order_release);
	}
	if (envelope == NULL && own < EVC_LANE_COUNT) {
		envelope = evc_mailbox_take_first(mailbox, own);
		if (envelope == NULL)
			goto look;
	}
	return envelope;
}

/* The next event; NULL if there is none, or the worker has to end. */
static inline struct evc_envelope *next(struct evc_worker *worker, bool is_held)
{
	struct evc_envelope *envelope;
	/* A worker that is held is neither asleep nor looking: see evc_worker_run. */
	bool passes_on = !is_held && worker->passes_on;

	if (evc_unlikely(passes_on)) {
		worker->passes_on = false;
		/* W7. The fence keeps the take's looks after it: a post may rely on them (P4). */
		evc_worker_stop_looking(worker);
		atomic_thread_fence(memory_order_seq_cst);
	}
	envelope = next_of_any(worker, is_held, passes_on);
	while (evc_unlikely(envelope != NULL && (envelope->flags & EVC_ENVELOPE_TOKEN))) {
		envelope = event_of(worker, envelope);
		if (envelope != NULL)
			break;
		/* Look again: another lane may be first by now. */
		envelope = next_of_any(worker, is_held, passes_on);
	}
	if (evc_unlikely(passes_on) && envelope != NULL)
		wake_next(worker);
	return envelope;
}

/*
 * There was nothing to take. True: the worker has ended. `*closes`: it must end soon, and not wait. Only its own mailbox
 * matters to a worker that is held.
 */
static bool end_if_closed(struct evc_worker *worker, bool is_held, bool *closes)
{
	struct evc_mailbox *mailbox = worker->mailbox;
	struct evc_shared_mailbox *shared = worker->shared;
	bool retires = evc_mailbox_is_closing(mailbox);
	/* Acquire, pairs with close_with: what the closer did before. */
	uint32_t attention = is_held ? 0 : atomic_load_explicit(&shared->attention, memory_order_acquire);

	*closes = retires || (attention & EVC_SHARED_CLOSED);
	if (!*closes)
		return false;
	if (attention & EVC_SHARED_DROP) {
		evc_mailbox_close(mailbox);
	} else if (!retires) {
		/*
		 * Posts before the close are found here: a late post that finds the mailbox ended drops
		 * everything that is there.
		 */
		if (evc_shared_has_some(shared))
			return false;
		/* From here on late posts drop themselves; earlier ones are still to be found. */
		atomic_fetch_or_explicit(&shared->attention, EVC_SHARED_ENDED, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (evc_shared_has_some(shared))
			return false;
		evc_mailbox_close_when_empty(mailbox);
	}
	if (!evc_mailbox_end(mailbox))
		return false;
	if (attention & EVC_SHARED_DROP) {
		/* A post that did not see the close (P2) precedes it in the single order, and so this, and is found. */
		atomic_thread_fence(memory_order_seq_cst);
		evc_shared_drop_all(shared);
	}
	return true;
}

enum evc_status evc_worker_take(struct evc_worker *worker, struct evc_envelope **out)
{
	bool closes;

	if (evc_unlikely(worker == NULL || out == NULL))
		return EVC_INVALID_ARGUMENT;
	for (;;) {
		*out = next(worker, false);
		if (*out != NULL)
			return EVC_OK;
		if (end_if_closed(worker, false, &closes))
			return EVC_CLOSED;
		/* A post to its own mailbox may have come meanwhile. */
		if (!closes && !evc_mailbox_has_mail(worker->mailbox))
			return EVC_EMPTY;
	}
}

void evc_worker_recycle(struct evc_worker *worker, struct evc_envelope *envelope,
			bool payload_moved)
{
	evc_mailbox_recycle(worker->mailbox, envelope, payload_moved);
}

static inline void deliver(struct evc_worker *worker, struct evc_envelope *envelope)
{
	struct evc_subscription *subscription = envelope->subscription;
	void *payload = evc_envelope_payload_inline(envelope);
	bool owned = evc_envelope_owns_payload(envelope), moved;

	if (evc_likely(subscription->is_shared))
		moved = subscription->deliver_by_worker(worker->context, subscription->context, payload,
							envelope, owned);
	else
		moved = subscription->deliver(subscription->context, payload, envelope, owned);
	evc_mailbox_recycle(worker->mailbox, envelope, moved);
}

void evc_worker_hold(struct evc_worker *worker)
{
	/* Relaxed: the start of its thread orders it. */
	atomic_store_explicit(&worker->is_held, true, memory_order_relaxed);
}

void evc_worker_admit(struct evc_worker *worker)
{
	/* Release, pairs with evc_worker_is_held: what was registered for the worker. Before the interrupt. */
	atomic_store_explicit(&worker->is_held, false, memory_order_release);
	evc_mailbox_interrupt(worker->mailbox);
}

/* Delivers one envelope if there is one: EVC_OK. EVC_EMPTY: there is none. EVC_CLOSED: the worker has ended. */
static inline enum evc_status deliver_next(struct evc_worker *worker)
{
	for (;;) {
		/* A worker that is held is neither asleep nor looking, so that no post relies on it. */
		bool held = evc_worker_is_held(worker), closes;
		struct evc_envelope *envelope = next(worker, held);

		if (evc_likely(envelope != NULL)) {
			deliver(worker, envelope);
			return EVC_OK;
		}
		if (end_if_closed(worker, held, &closes)) {
			part(worker);
			return EVC_CLOSED;
		}
		/* Read again, since `next` may have cleared the interrupt of an admission. */
		if (!closes && held == evc_worker_is_held(worker))
			return EVC_EMPTY;
	}
}

enum evc_status evc_worker_run_claimed(struct evc_worker *worker)
{
	struct evc_shared_consumed consumed = { worker->shared, evc_shared_consumed };
	struct evc_return_cache returns = { 0 };

	evc_shared_consumed = &consumed;
	worker->mailbox->returns = &returns;
	for (;;) {
		enum evc_status status = deliver_next(worker);

		if (evc_likely(status == EVC_OK))
			continue;
		if (status == EVC_CLOSED)
			break;
		evc_mailbox_call_idle(worker->mailbox);
		(void)evc_worker_wait(worker, EVC_FOREVER);
	}
	worker->mailbox->returns = NULL;
	evc_shared_consumed = consumed.outer;
	evc_mailbox_give_back(worker->mailbox);
	return EVC_CLOSED;
}

enum evc_status evc_worker_run(struct evc_worker *worker)
{
	if (worker == NULL)
		return EVC_INVALID_ARGUMENT;
	return evc_mailbox_claim(worker->mailbox) ? evc_worker_run_claimed(worker) : EVC_NOT_PERMITTED;
}

enum evc_status evc_worker_poll(struct evc_worker *worker)
{
	struct evc_shared_consumed consumed = { NULL, evc_shared_consumed };
	enum evc_status status;

	if (worker == NULL)
		return EVC_INVALID_ARGUMENT;
	consumed.mailbox = worker->shared;
	evc_shared_consumed = &consumed;
	status = deliver_next(worker);
	if (status == EVC_EMPTY)
		evc_mailbox_call_idle(worker->mailbox);
	/* Behind `idle`, whose posts must not wait for a place either: nobody else would free it. */
	evc_shared_consumed = consumed.outer;
	/* The next poll may be far off. */
	if (status == EVC_OK)
		evc_shared_unblock(worker->shared);
	return status;
}
#endif
