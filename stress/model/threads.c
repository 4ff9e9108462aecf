/*
 * threads.c - the threads of the library under test: pthread_create and pthread_join, implemented
 * with threads of the checked program, and the system's list of threads, which replaces
 * lib/weir/base/thread.c.
 *
 * The checker's threads exist from the beginning. A program lends some of them to library code that
 * starts threads. A thread is lent by calling weiri_model_lend(), which sleeps until a
 * pthread_create takes the thread. This file is compiled into the library under test, so that the
 * checker restores the variables of this file, and checks accesses to them like all others.
 *
 * Pairs
 *   P1  create (state) -> lend: what was done before the thread was created
 *   P2  lend (state) -> join: what the thread did
 *   P3  vanish (gone) -> a fence after is_gone: what the thread did. Linux runs fences when it
 *       ends a thread, and the thread runs no instruction after them. is_gone orders nothing for
 *       the caller, which needs a fence of its own
 */
#include "model/threads.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "base/pin.h"
#include "base/thread.h"
#include "sync/park.h"

enum { MOST = 4 };
enum { LENT = 0, TAKEN = 1, BACK = 2 };

struct loan {
	_Atomic(uint32_t) state;
	void *(*run)(void *argument);
	void *argument;
};

static struct loan loans[MOST];
static _Atomic(uint32_t) taken;
static uint32_t most = MOST;

void weiri_model_lend_at_most(uint32_t threads)
{
	most = threads;
}

void weiri_model_lend(size_t number)
{
	struct loan *loan = &loans[number];

	/* [P1 acquire] in the park. */
	(void)weiri_park_wait(&loan->state, LENT, WEIR_NO_DEADLINE);
	if (loan->run != NULL)
		(void)loan->run(loan->argument);
	/* [P2 release] */
	weiri_store_release(&loan->state, BACK);
	weiri_park_wake(&loan->state, INT_MAX);
}

static void take(struct loan *loan, void *(*run)(void *), void *argument)
{
	loan->run = run;
	loan->argument = argument;
	/* [P1 release] */
	weiri_store_release(&loan->state, TAKEN);
	weiri_park_wake(&loan->state, INT_MAX);
}

void weiri_model_give_back(void)
{
	for (uint32_t i = weiri_load_relaxed(&taken); i < most; i++)
		take(&loans[i], NULL, NULL);
}

int weir_model_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	uint32_t number;

	(void)attributes;
	/* [relaxed] a number; each of several concurrent calls gets another one. */
	number = weiri_fetch_add_relaxed(&taken, 1);
	if (number >= most)
		return EAGAIN;
	take(&loans[number], run, argument);
	/* As late as POSIX allows: the new thread may run before its id is written. */
	*id = (pthread_t)number + 1;
	return 0;
}

int weir_model_pthread_join(pthread_t id, void **result)
{
	(void)result;
	/* [P2 acquire] in the park. */
	(void)weiri_park_wait(&loans[id - 1].state, TAKEN, WEIR_NO_DEADLINE);
	return 0;
}

int weir_model_pthread_setname_np(pthread_t id, const char *name)
{
	(void)id, (void)name;
	return 0;
}

/* -- the system's list ------------------------------------------------------------------------- */

static _Atomic(uint32_t) gone[WEIRI_MODEL_NO_THREAD - 1];

void weiri_pin_self(void)
{
}

uint32_t weiri_thread_ask(void)
{
	return weiri_model_thread_number() + 1;
}

bool weiri_thread_is_gone(uint32_t thread)
{
	/* [relaxed] P3: the caller has its own fence. */
	return thread >= WEIRI_MODEL_NO_THREAD || weiri_load_relaxed(&gone[thread - 1]) != 0;
}

void weiri_model_vanish(void)
{
	/* [P3 release] */
	weiri_store_release(&gone[weiri_model_thread_number()], 1u);
	weiri_model_end_thread();
}
