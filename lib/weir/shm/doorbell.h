/*
 * doorbell.h - waiting in shared memory for a change that another process makes.
 *
 * A bell is one word of 32 bits: how often it was rung, a bit for threads that sleep, and a bit for
 * a poller that asked for its eventfd to be written. A thread that waits sets its bit, looks at what
 * it waits for once more, and sleeps on the word (a shared futex). A thread that changes what others
 * wait for looks at the bits after the change. If the sleepers' is set, it clears that bit; if it
 * was the one to clear it, it counts one ring, and then wakes all that sleep. The poller's bit is
 * cleared in the same way by a process that has an eventfd, which it then writes.
 *
 * Pair B1, Dekker's pattern: ask (seq_cst), then look at the object | change the object, then look
 *   at the bell (seq_cst). The object's looks and changes are seq_cst, too. So the waiter sees the
 *   change, or the changer sees the bit.
 * D1 A thread sleeps on a word with its bit only until the change that it missed is rung. Linux
 *   compares the word again before the thread sleeps. Let w be the waiter's word, and let it have
 *   missed a change. Its bit was set before the changer looked at the bell (B1), so some ring cleared it
 *   after the waiter had asked: that of the changer, or an earlier one. That ring then counts, and
 *   then wakes. If the waiter sleeps before the count, the wake-up finds it; after the count the word
 *   differs from w. It is not enough to count first and clear then: a second waiter could set the bit
 *   again after both, and the word would be w.
 * A ring by a process that dies or stops between the bit and the system call is lost. So a sleep
 *   lasts at most WEIRI_BELL_LOOK_NS, after which the thread looks again.
 * Slip. A waiter that looks all the time goes in step with the other side: each item then takes its
 *   lines away from both. A waiter that comes back a microsecond later finds several items, and both
 *   sides run on lines of their own meanwhile (temporal slipping: Giacomoni, Moseley, Vachharajani,
 *   PPoPP 2008). So a wait begins with a pause if the last pause paid: WEIRI_BELL_PAYS attempts in a
 *   row then succeeded at once. Where none has paid, one wait in WEIRI_BELL_PROBE tries it. So a
 *   request and its answer seldom pay for it.
 * Progress: ringing is wait-free: one load if no bit is set, otherwise at most three more accesses and
 *   two system calls. (One fetch-and clears one bit: a bit test-and-reset of x86-64, not a loop.)
 * Checked: stress/model/check_shm.c, tests/test_shm_ring.c.
 */
#ifndef WEIRI_SHM_DOORBELL_H
#define WEIRI_SHM_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "shm/step.h"

enum { WEIRI_BELL_SLEEPERS = 1, WEIRI_BELL_POLLER = 2, WEIRI_BELL_RING = 4 };
/* In the model checker a scope says whether sleepers look by themselves. */
#if defined(WEIRI_UNDER_MODEL)
extern uint64_t weiri_bell_look_ns;
#define WEIRI_BELL_LOOK_NS weiri_bell_look_ns
enum { WEIRI_BELL_SPINS = 0 };
#else
enum { WEIRI_BELL_LOOK_NS = 100000000, WEIRI_BELL_SPINS = 200 };
#endif

enum { WEIRI_BELL_SLIP = 64, WEIRI_BELL_PAYS = 4, WEIRI_BELL_PROBE = 32 }; /* pauses; attempts; waits */

/* A process's own view of a bell. */
struct weiri_bell {
	_Atomic(uint32_t) *word;  /* in shared memory */
	_Atomic(int) eventfd;     /* the caller's, written by this process's rings; -1: none */
	_Atomic(uint32_t) tokens; /* hooks that may still use this bell */
	_Atomic(uint32_t) run;    /* attempts that succeeded at once since the last wait; a hint */
	_Atomic(uint32_t) waits;  /* a hint */
};

/* Also for a change of the object that is not seq_cst, such as a close. */
WEIRI_COLD void weiri_bell_ring_slowly(struct weiri_bell *bell);

/* The caller has changed the object by a seq_cst access. */
static WEIRI_ALWAYS_INLINE void weiri_bell_ring(struct weiri_bell *bell)
{
	uint32_t seen;

	WEIRI_SHM_STEP();
	/* [seq_cst B1] after the change of the object; pairs with weiri_bell_ask(). */
	seen = weiri_load_seq_cst(bell->word);
	if (WEIRI_UNLIKELY((seen & (WEIRI_BELL_SLEEPERS | WEIRI_BELL_POLLER)) != 0))
		weiri_bell_ring_slowly(bell);
}

/* Sets a bit and returns the word with it. The caller looks at the object afterwards. */
static inline uint32_t weiri_bell_ask(struct weiri_bell *bell, uint32_t bit)
{
	WEIRI_SHM_STEP();
	/* [seq_cst B1] before the look at the object; pairs with weiri_bell_ring(). */
	return weiri_fetch_or_seq_cst(bell->word, bit) | bit;
}

/*
 * Makes this process's rings write to `eventfd` (-1: to none). Errors: WEIR_INVALID_ARGUMENT if a write
 * to it could wait, or raise SIGPIPE.
 */
enum weir_status weiri_bell_set_eventfd(struct weiri_bell *bell, int eventfd);

/* Returns WEIR_WOULD_BLOCK if the caller must wait; otherwise what the call returns. */
typedef enum weir_status weiri_bell_attempt(void *context);
/* Writes the message of a status that the attempt returned, and returns the status. */
typedef enum weir_status weiri_bell_explain(enum weir_status status, weir_error *error);

/* What waits, and how. */
struct weiri_bell_wait {
	const char *what; /* names the object in messages */
	weiri_bell_attempt *attempt;
	weiri_bell_explain *explain;
	void *context;
	uint64_t deadline_ns;
	weir_cancel *cancel; /* may be NULL */
};

/*
 * Attempts until the attempt returns anything else than WEIR_WOULD_BLOCK, the deadline has passed
 * (0: after one attempt), or the token has fired.
 */
enum weir_status weiri_bell_wait(struct weiri_bell *bell, const struct weiri_bell_wait *wait, weir_error *error);

#endif
