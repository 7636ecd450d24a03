/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The barrier on all threads, on which a waiting removal relies (D6): if the system refuses the call, another
 * call replaces it or the program ends; it never returns without having ordered anything.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#if defined(__linux__)
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 3

/* From here on membarrier fails: one of its commands, or all (-1). False: the system has no filters. */
static bool take_away(int command)
{
	/* The bits of the command that are compared: none if all commands fail. */
	const uint32_t mask = command < 0 ? 0 : UINT32_MAX;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 4),
		/* The lower half of the argument, on little-endian systems. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)command & mask, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static int fall_back(void *context)
{
	(void)context;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_SHARED, 0, 0) != 0 ||
	    !take_away(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return SKIPPED;
	return evc_barrier_everywhere() ? 0 : 1;
}

static int have_none(void *context)
{
	(void)context;
	if (!take_away(-1))
		return SKIPPED;
	return evc_barrier_everywhere() ? 1 : 2;
}

static const char *taken_away(void)
{
	char said[SUITE_SAID];
	int status;

	if (!evc_barrier_everywhere())
		return NULL;
	EXPECT_NONE(suite_in_child(fall_back, NULL, &status, said));
	EXPECT(WIFEXITED(status), "without one command the child was ended by signal %d: %s", WTERMSIG(status),
	       said);
	if (WEXITSTATUS(status) == SKIPPED)
		return NULL;
	EXPECT_EQUAL(WEXITSTATUS(status), 0, "the child without one command");
	EXPECT_NONE(suite_in_child(have_none, NULL, &status, said));
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "without the call the child went on");
	EXPECT(strstr(said, "membarrier") != NULL, "it does not say why: %s", said);
	return NULL;
}
#else
static const char *taken_away(void)
{
	return NULL;
}
#endif

static const struct evc_suite_test tests[] = {
	{ "D6 a barrier that the system takes away is replaced, or ends the program with a sentence", taken_away },
};
SUITE_GROUP(suite_barrier, tests);
#endif
