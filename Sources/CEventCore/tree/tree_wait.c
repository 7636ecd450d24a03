/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_wait.h"

#include "platform/domain.h"

/* Lock order: no thread holds this mutex and that of the trees at once. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	/* How often the waiting threads were told to look again. Under the mutex. */
	uint64_t wakes;
} waiting = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };

void evc_tree_wake_waiters(void)
{
	pthread_mutex_lock(&waiting.mutex);
	waiting.wakes++;
	pthread_cond_broadcast(&waiting.condition);
	pthread_mutex_unlock(&waiting.mutex);
}

void evc_walk_tell(struct evc_tree_walk *walk)
{
	if (!evc_walker_has_barrier)
		atomic_thread_fence(memory_order_seq_cst);
	/* Relaxed: ordered by the fence, or by V7. */
	if (!(atomic_load_explicit(&walk->attention, memory_order_relaxed) & EVC_WALK_AWAITED))
		return;
	/* Relaxed: V8 comes after it by the mutex. */
	atomic_fetch_and_explicit(&walk->attention, (uint8_t)~EVC_WALK_AWAITED,
				  memory_order_relaxed);
	evc_tree_wake_waiters();
}

void evc_tree_forget_waiters(void)
{
	/* The threads that slept on it do not exist in the child, but it may remember them. */
	waiting.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	waiting.condition = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

/* V4, V7. */
static void barrier(void)
{
	/* Without the call, walks have a fence. */
	if (!evc_barrier_everywhere())
		atomic_thread_fence(memory_order_seq_cst);
}

static struct evc_tree_walk *first_walk(struct evc_walker *walker)
{
	/* Acquire: pairs with evc_walker_add_walk, as in walker_holds. */
	return atomic_load_explicit(&walker->outermost, memory_order_acquire);
}

static struct evc_tree_walk *next_walk(struct evc_tree_walk *walk)
{
	/* Acquire: as in first_walk. */
	return atomic_load_explicit(&walk->inner, memory_order_acquire);
}

static bool is_calling(struct evc_tree_walk *walk, const struct evc_handler *handler)
{
	/* Acquire: pairs with V1 of the next call, or the walk's end: what the handler did. */
	return atomic_load_explicit(&walk->calling, memory_order_acquire) == handler;
}

/* V6: asks each walk that is inside the handler to tell when it leaves it. Under the mutex. */
static bool ask_walks(const struct evc_handler *handler, bool *any_is_new)
{
	bool any = false;

	*any_is_new = false;
	for (struct evc_walker *walker = evc_walkers(); walker != NULL; walker = walker->next) {
		for (struct evc_tree_walk *walk = first_walk(walker); walk != NULL; walk = next_walk(walk)) {
			if (!is_calling(walk, handler))
				continue;
			any = true;
			/* Relaxed: ordered by V7. */
			*any_is_new |= !(atomic_fetch_or_explicit(&walk->attention, EVC_WALK_AWAITED,
								  memory_order_relaxed) &
					 EVC_WALK_AWAITED);
		}
	}
	return any;
}

enum evc_status evc_handler_remove_and_wait(struct evc_handler *handler)
{
	struct evc_walker *walker = evc_walker_current;
	struct evc_tree_walk *walk = walker != NULL ? first_walk(walker) : NULL;
	enum evc_status status;

	if (handler == NULL)
		return EVC_INVALID_ARGUMENT;
	/* Not inside the handler. */
	for (; walk != NULL; walk = next_walk(walk))
		if (is_calling(walk, handler))
			return EVC_NOT_PERMITTED;
	status = evc_handler_remove(handler);
	barrier();
	for (;;) {
		bool is_running, is_new;
		uint64_t ticket;

		/* V5. */
		pthread_mutex_lock(&waiting.mutex);
		ticket = waiting.wakes;
		pthread_mutex_unlock(&waiting.mutex);
		evc_tree_lock();
		/* Its address cannot be another handler's: the caller holds it. */
		for (is_running = ask_walks(handler, &is_new); is_running && is_new;
		     is_running = ask_walks(handler, &is_new))
			barrier();
		evc_tree_unlock();
		if (!is_running)
			return status;
		/* V9. */
		pthread_mutex_lock(&waiting.mutex);
		while (waiting.wakes == ticket)
			pthread_cond_wait(&waiting.condition, &waiting.mutex);
		pthread_mutex_unlock(&waiting.mutex);
	}
}
#endif
