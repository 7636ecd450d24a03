/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What the calls are made of: the bytes of the input, payloads and their receivers, arguments, and a clock. */
#include "fuzz.h"

const size_t sizes[KEYS + 1] = { 0, sizeof(void *), sizeof(void *), sizeof(void *), 8, 24, 100 };

/* Payloads with memory: made, and ended. */
static size_t made;
/* Also on the reclaimer's thread. */
static _Atomic size_t ended;
static struct receiver *receivers;

static const uint8_t *input;
static size_t left;

unsigned draw(void)
{
	if (left == 0)
		return 0;
	left--;
	/* Mutations repeat bytes, which shall not repeat calls. The place is that from the end, which they keep. */
	return (*input++ ^ (unsigned)left * 0x9e3779b1u >> 24) & 255;
}

bool rarely(void)
{
	return draw() > 250;
}

bool owns(unsigned key)
{
	return key <= OWNING_KEYS;
}

void write_payload(void *place, unsigned key)
{
	unsigned *block;

	if (!owns(key)) {
		memset(place, (int)draw(), sizes[key]);
		return;
	}
	block = malloc(sizeof(*block));
	CHECK(block != NULL);
	*block = draw();
	made++;
	memcpy(place, &block, sizeof(block));
}

void drop_payload(void *context, void *payload)
{
	void *block;

	(void)context;
	memcpy(&block, payload, sizeof(block));
	free(block);
	ended++;
}

uint64_t number_of(void *context, const void *payload)
{
	const struct receiver *receiver = context;
	const unsigned *block;

	if (!owns(receiver->key))
		return *(const unsigned char *)payload;
	memcpy(&block, payload, sizeof(block));
	return *block;
}

struct receiver *make_receiver(unsigned key)
{
	struct receiver *receiver = calloc(1, sizeof(*receiver));

	CHECK(receiver != NULL);
	receiver->key = key;
	receiver->next = receivers;
	receivers = receiver;
	return receiver;
}

void forget_receiver(struct receiver *receiver)
{
	CHECK(!receiver->is_finalized);
	receiver->is_finalized = true;
}

void finalize_receiver(void *context)
{
	forget_receiver(context);
}

/* Arguments, wrong now and then. */

enum evc_lane some_lane(void)
{
	const unsigned drawn = draw();

	return (enum evc_lane)(drawn < 250 ? drawn % EVC_LANE_COUNT : drawn);
}

unsigned some_key(void)
{
	return 1 + draw() % KEYS;
}

enum evc_status set_size(void *options, size_t least, size_t right)
{
	unsigned char *bytes = options;
	size_t size = right;

	if (rarely())
		size = right - 16 + draw() % 32;
	if (rarely())
		bytes[right + draw() % 8] = 1;
	memcpy(options, &size, sizeof(size));
	if (size < least || size % 8 != 0)
		return EVC_INVALID_ARGUMENT;
	for (size_t i = right; i < size; i++)
		if (bytes[i] != 0)
			return EVC_UNSUPPORTED;
	return EVC_OK;
}

uint64_t stepped;

uint64_t read_time(void *context)
{
	CHECK(context == &stepped);
	return ++stepped;
}

bool has_input(void)
{
	return left > 0;
}

void begin_input(const uint8_t *data, size_t size)
{
	input = data;
	left = size;
	made = ended = 0;
}

void end_input(void)
{
	CHECK(ended == made);
	for (struct receiver *receiver; (receiver = receivers) != NULL; free(receiver)) {
		receivers = receiver->next;
		CHECK(receiver->is_finalized);
	}
}
