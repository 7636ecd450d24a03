/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Posting without waiting (realtime.h), held to its word: a thread under SCHED_FIFO, where the system allows that,
 * posts while a system call of its own would end the process (seccomp), and a lock or an allocation is counted. A
 * process of its own, since the filter stays, and the allocator's functions and the locks' are replaced.
 *
 *     poster ──► router ──┬──► polled mailbox ──► a thread that runs with EVC_WAIT_YIELD
 *     (filtered)          └──► polled mailbox ──► main pumps, and changes the subscriptions
 */
#define _GNU_SOURCE 1
#include <eventcore/eventcore.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESERVE 8192u
#define ATTEMPTS 400000u
#define COMPUTING 20000u

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("wrong, in line %d: %s\n", __LINE__, #condition);                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* True on the poster while it must not wait. */
static _Thread_local bool must_not_wait;
static _Atomic unsigned broken;

static void note(void)
{
	if (must_not_wait)
		atomic_fetch_add(&broken, 1);
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

void *malloc(size_t size)
{
	note();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	note();
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	note();
	return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	note();
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	note();
	*memory = __libc_memalign(alignment, size);
	return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory)
{
	note();
	__libc_free(memory);
}

/* One that is only tried is a lock, too: whoever gets it is waited for. */
#define COUNTED(function, lock)                                                                    \
	int function(lock *which)                                                                  \
	{                                                                                          \
		static _Atomic(int (*)(lock *)) real;                                              \
		int (*call)(lock *) = atomic_load(&real);                                          \
                                                                                                   \
		if (call == NULL) {                                                                \
			*(void **)&call = dlsym(RTLD_NEXT, #function);                             \
			atomic_store(&real, call);                                                 \
		}                                                                                  \
		note();                                                                            \
		return call(which);                                                                \
	}

COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_tryrdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_trywrlock, pthread_rwlock_t)

static void *allocate(void *context, size_t size, size_t alignment)
{
	const struct evc_allocator *standard = context;

	note();
	return standard->allocate(standard->context, size, alignment);
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	const struct evc_allocator *standard = context;

	note();
	standard->deallocate(standard->context, memory, size, alignment);
}

/* From here on the calling thread may only end itself; anything else ends the process with SIGSYS. */
static void forbid_system_calls(void)
{
	static struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	static const struct sock_fprog filter = { sizeof(program) / sizeof(*program), program };

	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

struct receiver {
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	uint64_t last, count;
	bool out_of_order;
};

static struct evc_router *router;
static struct receiver here, there;
static _Atomic bool is_done;
/* Written by the poster before `is_done`. */
static uint64_t posted, refused, direct;
static bool is_fifo;

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct receiver *receiver = context;
	uint64_t number;

	(void)envelope, (void)owned;
	memcpy(&number, payload, sizeof(number));
	receiver->out_of_order |= number <= receiver->last;
	receiver->last = number;
	receiver->count++;
	return false;
}

/* Nobody may call it for an event that is posted so. */
static void drop(void *context, void *payload)
{
	(void)context, (void)payload;
	note();
}

static void open_receiver(struct receiver *receiver)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .strategy = EVC_WAIT_YIELD, .polled = true };
	struct evc_subscription_options handler = {
		.size = sizeof(handler), .context = receiver, .deliver = deliver, .drop = drop
	};

	EXPECT(evc_mailbox_create(&options, &receiver->mailbox) == EVC_OK);
	EXPECT(evc_mailbox_add_subscription(receiver->mailbox, &handler, &receiver->subscription) == EVC_OK);
	EXPECT(evc_router_subscribe(router, 1, receiver->subscription, 0, false) == EVC_OK);
}

static void *post(void *unused)
{
	struct sched_param priority = { .sched_priority = 1 };

	/* Without a reserve nothing is taken. */
	EXPECT(evc_try_dispatch(router, 1, EVC_LANE_QUEUE_NORMAL, "12345678", 8, 8, NULL) == EVC_WOULD_ALLOCATE);
	EXPECT(evc_reserve(RESERVE) == EVC_OK);
	is_fifo = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
	forbid_system_calls();
	must_not_wait = true;
	for (uint64_t i = 1; i <= ATTEMPTS; i++) {
		uint32_t receivers = 0;
		enum evc_status status =
			evc_try_dispatch(router, 1, EVC_LANE_QUEUE_NORMAL, &i, sizeof(i), 8, &receivers);

		if (status == EVC_OK)
			posted += receivers;
		else if (status == EVC_WOULD_ALLOCATE)
			refused++;
		else
			atomic_fetch_add(&broken, 1);
		/* A block of audio, say, and then some computing. */
		if (i % 16 == 0)
			for (volatile unsigned j = 0; j < COMPUTING; j++)
				;
		/* And by hand, to one of them, on a lane of its own. */
		if (i % 64 == 0) {
			struct evc_envelope *envelope;
			struct evc_chain chain = EVC_CHAIN_EMPTY;
			uint64_t number = ATTEMPTS + i;

			if (evc_try_envelope_create(here.subscription, EVC_LANE_QUEUE_LOWEST, 8, 8, &envelope) != EVC_OK)
				continue;
			memcpy(evc_envelope_payload(envelope), &number, sizeof(number));
			evc_chain_append(&chain, envelope);
			if (evc_try_post(here.mailbox, &chain) == EVC_OK)
				direct++;
			else
				atomic_fetch_add(&broken, 1);
		}
	}
	atomic_store(&is_done, true);
	/* Not a return: the system's work at the end of a thread is not allowed any more. */
	syscall(SYS_exit, 0);
	return unused;
}

static bool deliver_other(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

/* Subscribes and unsubscribes another polled mailbox, so that the poster's snapshot changes under it and ends. */
static void change_routes(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = true };
	struct evc_subscription_options handler = { .size = sizeof(handler), .deliver = deliver_other };
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox;

	EXPECT(evc_mailbox_create(&options, &mailbox) == EVC_OK);
	EXPECT(evc_mailbox_add_subscription(mailbox, &handler, &subscription) == EVC_OK);
	EXPECT(evc_router_subscribe(router, 1, subscription, 0, false) == EVC_OK);
	(void)(evc_mailbox_pump(mailbox, EVC_FOREVER) == EVC_EMPTY);
	EXPECT(evc_router_unsubscribe(router, 1, subscription) == EVC_OK);
	(void)(evc_mailbox_pump(mailbox, EVC_FOREVER) == EVC_EMPTY);
	evc_mailbox_close(mailbox);
	evc_mailbox_release(mailbox);
	(void)(evc_reclaim(EVC_FOREVER) == EVC_OK);
}

int main(void)
{
	struct evc_allocator counting = { (void *)(uintptr_t)evc_allocator_default(), allocate, deallocate };
	struct evc_thread *thread;
	pthread_t poster;
	unsigned changes = 0;

	EXPECT(evc_allocator_install(&counting) == EVC_OK);
	EXPECT(evc_router_create(&router) == EVC_OK);
	open_receiver(&here);
	open_receiver(&there);
	EXPECT(evc_thread_start(NULL, there.mailbox, &thread) == EVC_OK);
	EXPECT(pthread_create(&poster, NULL, post, NULL) == 0);
	while (!atomic_load(&is_done)) {
		EXPECT(evc_mailbox_pump(here.mailbox, EVC_FOREVER) == EVC_EMPTY);
		change_routes();
		changes++;
	}
	pthread_join(poster, NULL);
	EXPECT(evc_mailbox_pump(here.mailbox, EVC_FOREVER) == EVC_EMPTY);
	evc_mailbox_close_when_empty(there.mailbox);
	EXPECT(evc_thread_join(thread) == EVC_OK);
	EXPECT(atomic_load(&broken) == 0);
	/* The lowest lane's events overtake nothing that was there before, and may be overtaken. */
	EXPECT(!there.out_of_order);
	EXPECT(here.count > RESERVE / 4 && here.count >= there.count);
	EXPECT(posted >= here.count - direct + there.count);
	printf("%llu posts, %llu refused for want of a slot, %u changes of the routes, %s: ok\n",
	       (unsigned long long)(posted + direct), (unsigned long long)refused, changes,
	       is_fifo ? "under SCHED_FIFO" : "without SCHED_FIFO, which is not allowed here");
	return 0;
}
