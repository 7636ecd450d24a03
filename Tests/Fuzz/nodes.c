/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Four nodes, their handlers, and walks whose handlers change the tree. An object is a block that is released once. */
#include "fuzz.h"

enum { NODES = 4, HANDLERS = 4, PHASES = EVC_HANDLER_RAISE | EVC_HANDLER_PROPAGATE | EVC_HANDLER_CAPTURE };

static struct evc_node *nodes[NODES];
static struct evc_handler *handlers[HANDLERS];
static size_t objects;

static void release(void *object)
{
	free(object);
	objects--;
}

static void make(unsigned index)
{
	PADDED(struct evc_node_options) options = { .known = { .owner = &nodes[index], .release = release } };
	enum evc_status expected = set_size(&options, sizeof(options.known), sizeof(options.known));

	if (nodes[index] == NULL)
		CHECK(evc_node_create(&options.known, &nodes[index]) == expected);
}

static void add_handler(unsigned index)
{
	const unsigned slot = draw() % HANDLERS, modes = draw() % 32, key = rarely() ? 0 : some_key();
	const bool keeps = handlers[slot] == NULL && draw() % 2 == 0;
	void *object = malloc(1);
	enum evc_status status;

	objects++;
	status = evc_node_add_handler(nodes[index], key, (uint8_t)modes, object, keeps ? &handlers[slot] : NULL);
	CHECK((status == EVC_OK) == (key != 0 && (modes & PHASES) != 0));
	if (status != EVC_OK)
		release(object);
}

static void walk(unsigned index)
{
	const unsigned scope = draw() % 64;
	struct evc_walk *walk;

	if (evc_walk_begin(nodes[index], some_key(), scope, &walk) != EVC_OK)
		return;
	do {
		CHECK(walk->count > 0 && (walk->phase & scope) != 0);
		for (uint32_t i = 0; i < walk->count; i++) {
			if (!evc_walk_will_call(walk, i))
				continue;
			/* Owned by the walk while the handler runs. */
			*(unsigned char *)walk->objects[i] = 1;
			CHECK(evc_handler_object(walk->handlers[i]) == walk->objects[i] &&
			      (evc_handler_modes(walk->handlers[i]) & walk->phase) != 0);
			act();
		}
	} while (!rarely() && evc_walk_next(walk) == EVC_OK);
	CHECK(evc_walk_top(walk) != NULL);
	evc_walk_end(walk);
}

static void end_handler(unsigned slot)
{
	const unsigned way = draw() % 4;

	if (handlers[slot] == NULL)
		return;
	if (way == 0)
		(void)evc_handler_remove(handlers[slot]);
	else if (way == 1)
		(void)!evc_handler_remove_and_wait(handlers[slot]);
	if (way < 2)
		return;
	evc_handler_drop(handlers[slot]);
	handlers[slot] = NULL;
}

void call_nodes(unsigned choice)
{
	const unsigned index = draw() % NODES, other = draw() % NODES;
	struct evc_node *node = nodes[index];
	void *former;

	if (node == NULL) {
		make(index);
		return;
	}
	switch (choice) {
	case 0:
		if (draw() % 4 == 0) {
			(void)evc_node_end(node);
			nodes[index] = NULL;
		}
		break;
	case 1:
		if (nodes[other] != NULL) {
			enum evc_status status = evc_node_attach(node, nodes[other], draw() % 2 == 0 ? &former : NULL);

			CHECK(status == EVC_OK || status == EVC_NOT_PERMITTED);
			CHECK(status == EVC_OK || index == other || evc_node_depth(nodes[other]) > 0);
		}
		break;
	case 2:
		if (draw() % 4 == 0)
			(void)evc_node_detach(node);
		break;
	case 3:
		(void)evc_node_remove_handlers(node, draw() % (KEYS + 1), (uint8_t)draw());
		break;
	case 4:
		end_handler(draw() % HANDLERS);
		break;
	case 5:
		CHECK(evc_node_depth(node) < NODES && evc_node_owner(node) == &nodes[index]);
		break;
	case 6:
		add_handler(index);
		break;
	default:
		walk(index);
	}
}

void end_nodes(void)
{
	for (unsigned i = 0; i < HANDLERS; i++) {
		evc_handler_drop(handlers[i]);
		handlers[i] = NULL;
	}
	for (unsigned i = 0; i < NODES; i++) {
		(void)evc_node_end(nodes[i]);
		nodes[i] = NULL;
	}
	CHECK(objects == 0);
}
