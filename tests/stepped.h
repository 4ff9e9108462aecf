/*
 * stepped.h - stops a call before any of its instructions, for as long as the test wants, while
 * other threads work on the same objects.
 *
 * A call runs in a thread of its own under the processor's single-step flag. The test says before
 * which instruction the call stands still, works on the objects, and lets the call go on. A test
 * that tries each instruction in turn covers every interleaving with one switch away from the call.
 * For a lock-free call it shows that the call, wherever it stalls, blocks no other thread:
 *
 *     struct stepped call = {.call = take_a_snapshot, .context = &scene};
 *
 *     for (size_t at = 0; stepped_start(&call, at); at += stepped_stride(1)) {
 *         overtake(&scene);
 *         stepped_finish(&call);
 *         judge(&scene);
 *     }
 *     stepped_finish(&call);
 *
 * Instructions outside of the test program, such as those of libc, run but are not counted, so that
 * no call stands still while it holds a lock of malloc. The call stands still in a signal handler.
 * `in_handler`, if any, does there what a signal handler may do.
 *
 * This works only on x86-64. It does not work under ThreadSanitizer, which delays signals, under
 * MemorySanitizer, which does not know the stack of a foreign function, or under valgrind. So tests
 * begin with stepped_or_skip().
 */
#ifndef STEPPED_H
#define STEPPED_H

#include <criterion/criterion.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "base/futex.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer) && \
	!__has_feature(memory_sanitizer)
enum { STEPPED_WORKS = 1 };
#else
enum { STEPPED_WORKS = 0 };
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
/* A sanitizer makes several instructions of each one. */
enum { STEPPED_STRIDE = 13 };
#else
enum { STEPPED_STRIDE = 1 };
#endif

#define STEPPED_NEVER SIZE_MAX
/* The trap flag of the processor. */
enum { STEPPED_FLAG = 0x100 };
enum { STEPPED_RUNS, STEPPED_STANDS, STEPPED_ENDED };

struct stepped {
	/* NULL: nothing. Runs on the call's thread, at full speed, before the call. */
	void (*prepare)(void *context);
	void (*call)(void *context);
	/* NULL: nothing. Runs each time the call goes on. */
	void (*in_handler)(void *context);
	void *context;

	pthread_t thread;
	/* Written by the stepped thread, or by the test while that thread stands still. */
	size_t stop_at;
	size_t count; /* instructions so far */
	uintptr_t return_to;
	int was_ours; /* of the last step */
	_Atomic(uint32_t) state;
};

static const uint64_t stepped_patience_ns = UINT64_C(100000000000);
static _Thread_local struct stepped *stepped_mine;

/* The bounds of the program's own instructions. The linker defines them. */
extern const char __executable_start, etext;

static inline void stepped_or_skip(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	/* The processor that valgrind emulates has no trap flag. */
	if (!STEPPED_WORKS || (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL))
		cr_skip_test("no single steps here");
}

/*
 * The number of instructions from one trial to the next, so that a test takes about a second.
 * `cost` compares the length of a trial with the shortest kind, whose cost is 1. With
 * WEIR_STEPPED_STRIDE=1 in the environment a test tries every instruction; do that when you change
 * what is tested.
 */
static inline size_t stepped_stride(size_t cost)
{
	const char *asked = getenv("WEIR_STEPPED_STRIDE");

	return asked != NULL ? strtoul(asked, NULL, 10) : STEPPED_STRIDE * cost;
}

static inline void stepped_set_state(struct stepped *stepped, uint32_t state)
{
	/* [release] pairs with stepped_await(). */
	weiri_store_release(&stepped->state, state);
	weiri_futex_wake(&stepped->state, INT_MAX);
}

/*
 * Waits until the state differs from `state`. Returns the new state, or `state` if the patience ran
 * out.
 */
static inline uint32_t stepped_await(struct stepped *stepped, uint32_t state)
{
	uint64_t deadline = weir_deadline_in(stepped_patience_ns);

	/* [acquire] pairs with stepped_set_state(). */
	while (weiri_load_acquire(&stepped->state) == state && weiri_futex_wait(&stepped->state, state, deadline))
		;
	return weiri_load_acquire(&stepped->state); /* [acquire] as above */
}

static inline void stepped_stand_still(struct stepped *stepped)
{
	stepped_set_state(stepped, STEPPED_STANDS);
	while (stepped_await(stepped, STEPPED_STANDS) == STEPPED_STANDS)
		;
	if (stepped->in_handler != NULL)
		stepped->in_handler(stepped->context);
}

#if defined(__x86_64__) && defined(__linux__)
/*
 * A foreign function that runs at full speed returns here. Without the nop, a function of the program
 * may begin where the trap is seen.
 */
void stepped_returned(void);
__asm__(".pushsection .text\n.local stepped_returned\nstepped_returned: int3\n\tnop\n.popsection");

static inline int stepped_is_ours(uintptr_t address)
{
	return address >= (uintptr_t)&__executable_start && address < (uintptr_t)&etext;
}

/*
 * After a step into a function of another object, the function runs at full speed and returns to a
 * trap. If the return address is not ours, as in the dynamic linker, the function is stepped
 * through instead.
 */
static inline int stepped_skip_foreign(struct stepped *stepped, greg_t *registers)
{
	uintptr_t *top = (uintptr_t *)registers[REG_RSP];

	if (!stepped_is_ours(*top))
		return 0;
	stepped->return_to = *top;
	*top = (uintptr_t)&stepped_returned;
	return 1;
}

static inline void stepped_trap(int signal_number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	struct stepped *stepped = stepped_mine;
	int skips = 0;

	(void)signal_number, (void)info;
	if ((uintptr_t)registers[REG_RIP] == (uintptr_t)&stepped_returned + 1) {
		registers[REG_RIP] = (greg_t)stepped->return_to;
		registers[REG_EFL] |= (greg_t)STEPPED_FLAG;
	}
	if (!stepped_is_ours((uintptr_t)registers[REG_RIP]))
		skips = stepped->was_ours && stepped_skip_foreign(stepped, registers);
	else if (stepped->count++ == stepped->stop_at)
		stepped_stand_still(stepped);
	stepped->was_ours = stepped_is_ours((uintptr_t)registers[REG_RIP]);
	/* No stop lies ahead: continue at full speed. */
	if (skips || stepped->stop_at < stepped->count)
		registers[REG_EFL] &= ~(greg_t)STEPPED_FLAG;
}

/* Moves the stack pointer past the red zone, which a leaf function may use below it. */
static inline void stepped_begin_steps(void)
{
	__asm__ __volatile__("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
	                         : "memory", "cc");
}

static inline void stepped_end_steps(void)
{
	__asm__ __volatile__(
		"lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
			: "memory", "cc");
}

static inline int stepped_install(void)
{
	struct sigaction action = {.sa_sigaction = stepped_trap, .sa_flags = SA_SIGINFO};

	return sigaction(SIGTRAP, &action, NULL);
}
#else
static inline void stepped_begin_steps(void)
{
}

static inline void stepped_end_steps(void)
{
}

static inline int stepped_install(void)
{
	return -1;
}
#endif

static inline void *stepped_main(void *context)
{
	struct stepped *stepped = context;

	stepped_mine = stepped;
	if (stepped->prepare != NULL)
		stepped->prepare(stepped->context);
	stepped_begin_steps();
	stepped->call(stepped->context);
	stepped_end_steps();
	stepped_set_state(stepped, STEPPED_ENDED);
	return NULL;
}

/* Waits until the call stands still (1) or has ended (0). */
static inline int stepped_wait(struct stepped *stepped)
{
	uint32_t state = stepped_await(stepped, STEPPED_RUNS);

	cr_assert_neq(state, STEPPED_RUNS, "the call neither stands still nor ends");
	return state == STEPPED_STANDS;
}

/*
 * Starts the call. Returns 1 when it stands still before instruction number `stop_at`, or 0 when it
 * ended before.
 */
static inline int stepped_start(struct stepped *stepped, size_t stop_at)
{
	cr_assert_eq(stepped_install(), 0);
	stepped->stop_at = stop_at;
	stepped->count = 0;
	stepped->was_ours = 0;
	/* [relaxed] the thread does not exist yet */
	weiri_store_relaxed(&stepped->state, STEPPED_RUNS);
	cr_assert_eq(pthread_create(&stepped->thread, NULL, stepped_main, stepped), 0);
	return stepped_wait(stepped);
}

/* Lets a call that stands still go on for one instruction. Returns the same as stepped_start(). */
static inline int stepped_next(struct stepped *stepped)
{
	stepped->stop_at = stepped->count;
	stepped_set_state(stepped, STEPPED_RUNS);
	return stepped_wait(stepped);
}

/* Lets a call that stands still go on to its end, and joins its thread. */
static inline void stepped_finish(struct stepped *stepped)
{
	/* [acquire] pairs with stepped_set_state(). */
	if (weiri_load_acquire(&stepped->state) == STEPPED_STANDS) {
		stepped->stop_at = 0;
		stepped_set_state(stepped, STEPPED_RUNS);
		cr_assert_eq(stepped_wait(stepped), 0);
	}
	cr_assert_eq(pthread_join(stepped->thread, NULL), 0);
}

#endif
