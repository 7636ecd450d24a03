/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Six nodes, their handlers, and walks whose handlers change the tree. An object is a block that is released once. */
#include "fuzz.h"

enum { NODES = 6, HANDLERS = 4, EVENTS = 2, PHASES = EVC_HANDLER_RAISE | EVC_HANDLER_PROPAGATE | EVC_HANDLER_CAPTURE };

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
		CHECK(is_status(evc_node_create(&options.known, &nodes[index]), expected));
}

static void add_handler(unsigned index)
{
	const unsigned slot = draw() % HANDLERS, modes = draw() % 32, key = rarely() ? 0 : 1 + draw() % EVENTS;
	const bool keeps = handlers[slot] == NULL && draw() % 2 == 0;
	void *object = malloc(1);
	enum evc_status status;

	objects++;
	status = evc_node_add_handler(nodes[index], key, (uint8_t)modes, object, keeps ? &handlers[slot] : NULL);
	CHECK(is_status(status, key != 0 && (modes & PHASES) != 0 ? EVC_OK : EVC_INVALID_ARGUMENT));
	if (status != EVC_OK)
		release(object);
	if (status == EVC_OK && keeps)
		CHECK(evc_handler_is_active(handlers[slot]) && evc_handler_key(handlers[slot]) == key &&
		      evc_handler_modes(handlers[slot]) == modes && evc_handler_node(handlers[slot]) == nodes[index] &&
		      evc_handler_object(handlers[slot]) == object);
}

static bool is_child(const struct evc_node *parent, const struct evc_node *node)
{
	const struct evc_node *child = evc_node_first_child(parent);

	while (child != NULL && child != node)
		child = evc_node_next_sibling(child);
	return child != NULL;
}

/* A node's neighbours know each other, and their depths fit. */
static void read_tree(unsigned index)
{
	const struct evc_node *node = nodes[index], *parent;
	const struct evc_handler *handler;
	size_t depths[NODES], children = 0;

	for (unsigned i = 0; i < NODES; i++)
		depths[i] = nodes[i] != NULL ? evc_node_depth(nodes[i]) : 0;
	evc_tree_lock();
	parent = evc_node_parent(node);
	CHECK(!evc_node_has_ended(node) && (parent != NULL) == (depths[index] > 0) &&
	      (parent == NULL || is_child(parent, node)));
	for (unsigned i = 0; i < NODES; i++) {
		if (nodes[i] == NULL || evc_node_parent(nodes[i]) != node)
			continue;
		CHECK(is_child(node, nodes[i]) && depths[i] == depths[index] + 1);
		children++;
	}
	CHECK(evc_node_child_count(node) == children);
	for (handler = evc_node_first_handler(node); handler != NULL; handler = evc_handler_next(handler))
		CHECK(evc_handler_node(handler) == node && evc_handler_is_active(handler) &&
		      evc_handler_key(handler) - 1 < EVENTS && (evc_handler_modes(handler) & PHASES) != 0);
	evc_tree_unlock();
}

/* Of a handler that a walk is about to call, and of its top. */
static void check_walk(struct evc_walk *walk, uint32_t i, unsigned key)
{
	bool has_ended;

	evc_tree_lock();
	(void)evc_node_has_ended(evc_walk_top(walk));
	has_ended = evc_node_has_ended(evc_handler_node(walk->handlers[i]));
	evc_tree_unlock();
	CHECK(!has_ended && evc_handler_is_active(walk->handlers[i]) && evc_handler_key(walk->handlers[i]) == key);
}

static void walk(unsigned index)
{
	struct evc_walk *walk;
	const unsigned scope = draw() % 64, key = rarely() ? 0 : 1 + draw() % EVENTS;
	const enum evc_status status = evc_walk_begin(nodes[index], key, scope, &walk);

	CHECK((status == EVC_INVALID_ARGUMENT) == (key == 0 || (scope & PHASES) == 0));
	CHECK(status != EVC_OUT_OF_MEMORY || memory_lacked());
	if (status != EVC_OK)
		return;
	do {
		CHECK(walk->count > 0 && (walk->phase & scope) != 0);
		for (uint32_t i = 0; i < walk->count; i++) {
			if (!evc_walk_will_call(walk, i))
				continue;
			/* Owned by the walk while the handler runs. */
			*(unsigned char *)walk->objects[i] = 1;
			check_walk(walk, i, key);
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
	bool is_refused = false;

	if (handlers[slot] == NULL)
		return;
	if (way == 0)
		(void)evc_handler_remove(handlers[slot]);
	else if (way == 1)
		is_refused = evc_handler_remove_and_wait(handlers[slot]) == EVC_NOT_PERMITTED;
	CHECK(way > 1 || is_refused ||
	      (!evc_handler_is_active(handlers[slot]) && evc_handler_remove(handlers[slot]) == EVC_NOT_FOUND));
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

	if (draw() % 16 == 0)
		lack_memory(draw());
	if (node == NULL) {
		make(index);
		node = nodes[index];
	}
	if (node == NULL) {
		have_memory();
		return;
	}
	switch (choice) {
	case 0:
		if (draw() % 8 == 0) {
			(void)evc_node_end(node);
			nodes[index] = NULL;
		}
		break;
	case 1:
	case 8:
		if (nodes[other] != NULL) {
			enum evc_status status = evc_node_attach(node, nodes[other], draw() % 2 == 0 ? &former : NULL);

			CHECK(is_status(status, EVC_OK) || status == EVC_NOT_PERMITTED);
			CHECK(status != EVC_NOT_PERMITTED || index == other || evc_node_depth(nodes[other]) > 0);
		}
		break;
	case 2:
		if (draw() % 4 == 0)
			(void)evc_node_detach(node);
		break;
	case 3:
		if (draw() % 4 == 0)
			(void)evc_node_remove_handlers(node, draw() % (EVENTS + 1), (uint8_t)draw());
		break;
	case 4:
		end_handler(draw() % HANDLERS);
		break;
	case 5:
		CHECK(evc_node_depth(node) < NODES && evc_node_owner(node) == &nodes[index]);
		break;
	case 6:
	case 9:
		add_handler(index);
		break;
	case 7:
		read_tree(index);
		break;
	default:
		walk(index);
	}
	have_memory();
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
