/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_private.h"

#include "tree/tree_memory.h"
#include "tree/tree_reclaim.h"

enum evc_status evc_node_add_handler(struct evc_node *node, uint64_t key, uint8_t modes,
				     void *object, struct evc_handler **out)
{
	struct evc_handler *handler, *last;
	uint64_t bit, now;

	if (node == NULL || key == 0 || (modes & EVC_HANDLER_PHASES) == 0)
		return EVC_INVALID_ARGUMENT;
	handler = evc_tree_allocate(sizeof(*handler));
	if (handler == NULL)
		return EVC_OUT_OF_MEMORY;
	*handler = (struct evc_handler){ .key = key, .node = node, .release = node->release };
	evc_tree_init_item(&handler->item, EVC_ITEM_HANDLER, object);
	handler->item.modes = modes;
	atomic_init(&handler->item.parts, out != NULL ? 0 : EVC_PART_CALLER);
	bit = evc_tree_bit(key);
	evc_tree_lock();
	now = evc_tree_now();
	atomic_init(&handler->item.stamp, now);
	last = node->last_handler;
	handler->item.previous = last != NULL ? &last->item : NULL;
	/* Relaxed, M: seen by walks that see the change counted. */
	atomic_store_explicit(&node->own,
			      atomic_load_explicit(&node->own, memory_order_relaxed) | bit,
			      memory_order_relaxed);
	if (modes & EVC_HANDLER_PROPAGATE)
		evc_tree_add_bits(node, bit);
	/* L: pairs with walks, the handler's fields before its pointer. */
	atomic_store_explicit(last != NULL ? &last->next : &node->first_handler, handler,
			      memory_order_release);
	node->last_handler = handler;
	evc_tree_count_change(now);
	if (out != NULL)
		*out = handler;
	evc_tree_unlock();
	return EVC_OK;
}

/* Under the mutex. */
static void retire(struct evc_handler *handler, uint64_t now)
{
	struct evc_handler *previous = (struct evc_handler *)handler->item.previous;
	struct evc_handler *next = evc_handler_next(handler);
	struct evc_node *node = handler->node;

	/* Relaxed: R publishes it, for evc_handler_is_active. */
	atomic_store_explicit(&handler->item.stamp, now, memory_order_relaxed);
	/* R: pairs with evc_handler_is_active. Walks learn of it by E (tree_wait.h). */
	atomic_store_explicit(&handler->item.state, 1, memory_order_release);
	/* L: the next handler was there already. */
	atomic_store_explicit(previous != NULL ? &previous->next : &node->first_handler, next,
			      memory_order_release);
	if (next != NULL)
		next->item.previous = handler->item.previous;
	else
		node->last_handler = previous;
	evc_tree_retire(&handler->item, now);
}

bool evc_node_retire_handlers(struct evc_node *node, uint64_t now)
{
	if (node->last_handler == NULL)
		return false;
	while (node->last_handler != NULL)
		retire(node->last_handler, now);
	return true;
}

size_t evc_node_remove_handlers(struct evc_node *node, uint64_t key, uint8_t modes)
{
	struct evc_handler *handler, *next;
	size_t count = 0;
	uint64_t now;

	evc_tree_lock();
	now = evc_tree_now();
	for (handler = evc_node_first_handler(node); handler != NULL; handler = next) {
		next = evc_handler_next(handler);
		if ((key != 0 && handler->key != key) || (modes != 0 && (handler->item.modes & modes) == 0))
			continue;
		retire(handler, now);
		count++;
	}
	if (count > 0) {
		evc_tree_drop_bits(node);
		evc_tree_count_change(now);
		evc_tree_tell_removal(now);
	}
	evc_tree_unlock();
	return count;
}

enum evc_status evc_handler_remove(struct evc_handler *handler)
{
	bool was_there;
	uint64_t now;

	if (handler == NULL)
		return EVC_INVALID_ARGUMENT;
	evc_tree_lock();
	now = evc_tree_now();
	/* Relaxed: written under the mutex. */
	was_there = atomic_load_explicit(&handler->item.state, memory_order_relaxed) == 0;
	if (was_there) {
		retire(handler, now);
		evc_tree_drop_bits(handler->node);
		evc_tree_count_change(now);
		evc_tree_tell_removal(now);
	}
	evc_tree_unlock();
	return was_there ? EVC_OK : EVC_NOT_FOUND;
}

bool evc_handler_is_active(const struct evc_handler *handler)
{
	/* Acquire, pairs with R: the time of the removal. */
	bool is_active = atomic_load_explicit(&handler->item.state, memory_order_acquire) == 0;

	/*
	 * Until the removal is announced, a walk may still call the handler. A thread that knows of the
	 * removal passes E on to a walk's thread. Relaxed: that one finds no older value than this.
	 */
	if (!is_active)
		is_active = atomic_load_explicit(&handler->item.stamp, memory_order_relaxed) >
			    atomic_load_explicit(&evc_tree.last_removal, memory_order_relaxed);
#ifdef EVC_THREAD_SANITIZER
	/*
	 * Release, pairs with evc_handler_drop: a caller may hold its reference in a way that the sanitizer does not
	 * understand, as Swift does, so that the drop by another thread would not seem to come after this.
	 */
	atomic_fetch_or_explicit(&((struct evc_handler *)handler)->item.parts, 0, memory_order_release);
#endif
	return is_active;
}

void evc_handler_drop(struct evc_handler *handler)
{
	if (handler == NULL)
		return;
	/* Pairs with free_items (tree_reclaim.c). */
	if (atomic_fetch_or_explicit(&handler->item.parts, EVC_PART_CALLER, memory_order_acq_rel) &
	    EVC_PART_TREE)
		evc_tree_free(handler, sizeof(*handler));
}

void *evc_handler_object(const struct evc_handler *handler)
{
	return handler->item.object;
}

struct evc_node *evc_handler_node(const struct evc_handler *handler)
{
	return handler->node;
}

uint8_t evc_handler_modes(const struct evc_handler *handler)
{
	return handler->item.modes;
}

uint64_t evc_handler_key(const struct evc_handler *handler)
{
	return handler->key;
}

struct evc_handler *evc_node_first_handler(const struct evc_node *node)
{
	/* Relaxed: under the mutex. */
	return atomic_load_explicit(&node->first_handler, memory_order_relaxed);
}

struct evc_handler *evc_handler_next(const struct evc_handler *handler)
{
	return atomic_load_explicit(&handler->next, memory_order_relaxed);
}
#endif
