/*
 * scenario_critical_section.c - one execution at a time, whichever thread enters and however it
 * waits.
 *
 * Threads execute in several ways: with deadlines, with tokens that other threads fire, without
 * waiting, and as operations for a pool of two threads, of which some are cancelled. There are two
 * sections, one of them fair. Checked:
 *
 *   alone      an execution writes plain memory and finds it as the previous one left it; this, and
 *              ThreadSanitizer, detect two executions at a time
 *   counts     each execution that reported success has run once, and no other execution has run;
 *              each operation completed once
 *   entering   no thread sleeps for ever (the watchdog), and at the end both sections are free
 */
#include "harness.h"

#include <inttypes.h>
#include <weir/critical_section.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "poison.h"
#include "scenarios.h"

enum { SECTIONS = 2, WORDS = 8 };

static const uint64_t flush_ns = 100000000000u;

static struct guarded {
	weir_critical_section *section;
	uint64_t words[WORDS];     /* plain: all equal to the number of executions that have run */
	_Atomic(uint64_t) claimed; /* executions that reported that they ran */
} guarded[SECTIONS];
static weir_pool *pool;
static _Atomic(weir_cancel *) token; /* the current token; a thread that takes it out fires it */

static enum weir_status alone(void *context, weir_error *error)
{
	struct guarded *mine = context;
	uint64_t before = mine->words[0];

	(void)error;
	for (size_t i = 0; i < WORDS; i++) {
		STRESS_CHECK(mine->words[i] == before, "two executions are inside: word %zu", i);
		mine->words[i] = before + 1;
	}
	return before % 3 == 0 ? WEIR_ABORTED : WEIR_OK;
}

static void claim(struct guarded *mine)
{
	(void)weiri_fetch_add_relaxed(&mine->claimed, 1u); /* [relaxed] a sum */
}

/* -- blocking executions ----------------------------------------------------------------------- */

static int ran(enum weir_status status)
{
	return status == WEIR_OK || status == WEIR_ABORTED;
}

/* Makes a token that other threads can fire while this thread waits. */
static weir_cancel *lend_token(void)
{
	weir_cancel *mine = NULL, *other;

	STRESS_CHECK(weir_cancel_create(NULL, &mine, NULL) == WEIR_OK, "no memory for a token");
	/* [acq_rel] the token's fields, from the thread that stored it to the thread that takes it. */
	other = weiri_exchange_acq_rel(&token, weir_cancel_retain(mine));
	if (other != NULL)
		(void)weir_cancel_fire(other, NULL);
	weir_cancel_release(other);
	return mine;
}

static void execute(struct stress_thread *self, struct guarded *mine)
{
	weir_cancel *cancel = stress_one_in(self, 3) ? lend_token() : NULL;
	uint64_t deadline_ns = WEIR_NO_DEADLINE;
	enum weir_status status;

	if (stress_one_in(self, 2))
		deadline_ns = stress_one_in(self, 4) ? 0 : weir_deadline_in(stress_below(self, 200000));
	stress_begin(self, "execute");
	status = weir_critical_section_execute(mine->section, alone, mine, deadline_ns, cancel, NULL);
	STRESS_CHECK(ran(status) || (status == WEIR_CANCELLED && cancel != NULL) ||
	                 (status == WEIR_DEADLINE_EXCEEDED && deadline_ns != WEIR_NO_DEADLINE),
	             "execute: %s", weir_status_name(status));
	if (ran(status))
		claim(mine);
	stress_end(self, 1);
	weir_cancel_release(cancel);
}

/* -- asynchronous executions ------------------------------------------------------------------- */

struct started {
	struct guarded *mine;
	_Atomic(uint32_t) ended;
	int cancelled;
};

static enum weir_status alone_as_task(void *context, weir_error *error)
{
	return alone(((struct started *)context)->mine, error);
}

static void ended(void *context, enum weir_status status, const weir_error *error)
{
	struct started *started = context;

	(void)error;
	STRESS_CHECK(ran(status) || (status == WEIR_CANCELLED && started->cancelled), "operation: %s",
	             weir_status_name(status));
	if (ran(status))
		claim(started->mine);
	/* [release] this thread no longer accesses it. */
	(void)weiri_fetch_add_release(&started->ended, 1u);
}

static void start(struct stress_thread *self, struct guarded *mine)
{
	struct started started = {.mine = mine, .cancelled = stress_one_in(self, 2)};
	weir_pending *op;
	unsigned spins = 0;

	stress_begin(self, "start");
	STRESS_CHECK(weir_critical_section_start(mine->section, pool, alone_as_task, &started, ended, &op, NULL) == WEIR_OK,
	             "no memory to start");
	if (started.cancelled)
		weir_pending_cancel(op, NULL);
	/* [acquire] it belongs to this thread again. */
	while (weiri_load_acquire(&started.ended) == 0)
		stress_back_off(&spins);
	STRESS_CHECK(weiri_load_acquire(&started.ended) == 1, "an operation completed twice");
	weir_pending_release(op);
	stress_end(self, 1);
}

/* -- all together ------------------------------------------------------------------------------ */

static void visitor(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		struct guarded *mine = &guarded[stress_below(self, SECTIONS)];

		if (stress_one_in(self, 3))
			start(self, mine);
		else
			execute(self, mine);
	}
}

static void open_section(struct guarded *mine, uint32_t flags)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .flags = flags,
	                                                .allocator = stress_poison()};

	*mine = (struct guarded){.section = NULL};
	STRESS_CHECK(weir_critical_section_create(&options, &mine->section, NULL) == WEIR_OK, "no memory");
}

/* No execution is inside, so this thread may access the plain data. */
static void close_section(struct guarded *mine)
{
	uint64_t claimed = weiri_load_relaxed(&mine->claimed); /* [relaxed] all threads have ended */

	STRESS_CHECK(mine->words[0] == claimed, "%" PRIu64 " executions have run, but %" PRIu64 " were reported",
	             mine->words[0], claimed);
	STRESS_CHECK(weir_critical_section_destroy(mine->section, NULL) == WEIR_OK,
	             "an execution is still inside, or waits");
}

void scenario_critical_section(void)
{
	struct weir_pool_options workers = {WEIR_POOL_OPTIONS_INIT, .threads = 2};
	unsigned visitors = stress_threads(4);

	STRESS_CHECK(weir_pool_create(&workers, &pool, NULL) == WEIR_OK, "cannot create a pool");
	weiri_store_relaxed(&token, NULL); /* [relaxed] before the threads */
	open_section(&guarded[0], 0);
	open_section(&guarded[1], WEIR_CRITICAL_SECTION_FAIR);
	for (unsigned i = 0; i < visitors; i++)
		(void)stress_start("visitor", visitor, NULL);
	stress_disturb();
	stress_join();
	STRESS_CHECK(weir_pool_destroy(pool, NULL) == WEIR_OK, "the pool cannot be destroyed");
	weir_cancel_release(weiri_exchange_acq_rel(&token, NULL));
	for (size_t i = 0; i < SECTIONS; i++)
		close_section(&guarded[i]);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(flush_ns)) == WEIR_OK, "the flush failed: memory is still held");
	stress_poison_check_empty();
}
