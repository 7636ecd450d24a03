/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the tests of a balancer share: a balancer with receivers, each with a load.
 */
#ifndef EVC_SUITE_CREW_H
#define EVC_SUITE_CREW_H

#include "suite.h"

#define CREW_MOST 5u

/* So many receivers with a load each, and a balancer for them. */
struct crew {
	struct evc_balancer *balancer;
	struct suite_receiver receivers[CREW_MOST];
	struct evc_load loads[CREW_MOST];
	unsigned count;
	/* What `choose` answers, and how often it was asked. */
	uint32_t answer;
	uint64_t asked;
	uint64_t drops;
	uint64_t finalized;
};

/* `choose` may be NULL. */
const char *crew_open(struct crew *crew, unsigned count,
		      uint32_t (*choose)(void *, const struct evc_balancer_choice *));
/* Frees all, and checks that nothing is held any more. */
const char *crew_close(struct crew *crew);

/*
 * Runs a test with payloads that need no ending: one that goes to a receiver alone is then copied into this
 * thread's stream to it, where others are posted as they are.
 */
const char *crew_plainly(const char *(*test)(void));

/* Answers `answer`, and counts. */
uint32_t crew_choose_answer(void *context, const struct evc_balancer_choice *choice);

/* Appends an envelope that is addressed to the balancer. */
const char *crew_append(struct crew *crew, struct evc_chain *chain, unsigned lane, uint64_t value);
enum evc_status crew_post(struct crew *crew, const struct evc_chain *chain);
/*
 * Posts the values first ... first + count - 1 as one chain. If it is refused, as `expected` says, the chain
 * has to be as it was, and ends here.
 */
const char *crew_post_values(struct crew *crew, uint64_t first, unsigned count,
			     enum evc_status expected);

const char *crew_expect_next(struct suite_receiver *receiver, uint64_t value);
const char *crew_expect_nothing(struct suite_receiver *receiver);

#endif
