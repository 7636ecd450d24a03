/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Shared by the tests of balancers: a balancer with receivers, each with a load. */
#ifndef EVC_SUITE_CREW_H
#define EVC_SUITE_CREW_H

#include "suite.h"

#define CREW_MOST 5u

/* A balancer and its receivers, each with a load. */
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
/* The same with options for the mailboxes, which may be NULL. */
const char *crew_open_with(struct crew *crew, unsigned count,
			   uint32_t (*choose)(void *, const struct evc_balancer_choice *),
			   const struct evc_mailbox_options *mailbox);
/* Frees everything, and checks that nothing is held any more. */
const char *crew_close(struct crew *crew);

/* Runs a test with payloads that need no ending: those may be copied into another envelope. */
const char *crew_plainly(const char *(*test)(void));

/* Answers `answer`, and counts. */
uint32_t crew_choose_answer(void *context, const struct evc_balancer_choice *choice);

/* Appends an envelope that is addressed to the balancer. */
const char *crew_append(struct crew *crew, struct evc_chain *chain, unsigned lane, uint64_t value);
enum evc_status crew_post(struct crew *crew, const struct evc_chain *chain);
/*
 * Posts the values first ... first + count - 1 as one chain. If it is refused, as `expected` says, the chain
 * must be unchanged; it then ends here.
 */
const char *crew_post_values(struct crew *crew, uint64_t first, unsigned count,
			     enum evc_status expected);

const char *crew_expect_next(struct suite_receiver *receiver, uint64_t value);
const char *crew_expect_nothing(struct suite_receiver *receiver);

#endif
