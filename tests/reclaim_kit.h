/*
 * reclaim_kit.h - retired objects for the tests of reclamation, which note when they are freed; and
 * threads that wait for each other.
 */
#ifndef RECLAIM_KIT_H
#define RECLAIM_KIT_H

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/futex.h"
#include "reclaim/admit.h"
#include "reclaim/collect.h"

static const uint64_t patience_ns = UINT64_C(100000000000);

enum { LARGE = 256 << 10 };

/* A retired object that notes when it is freed. */
struct thing {
	struct weiri_retired retired;
	_Atomic(uint32_t) *freed;
	/* Its reclaim function also calls this, if it is not NULL. */
	void (*also)(void);
};

/*
 * The number of reclaim functions that this thread is inside of. If a reclaim function could begin
 * a collection, they would nest without a bound.
 */
static _Thread_local int nested;

static inline void thing_reclaim(struct weiri_retired *object)
{
	struct thing *thing = (struct thing *)object;
	_Atomic(uint32_t) *freed = thing->freed;

	cr_assert_eq(nested++, 0);
	if (thing->also != NULL)
		thing->also();
	free(thing);
	nested--;
	(void)weiri_fetch_add_release(freed, 1u);
}

static inline struct thing *make(size_t bytes, _Atomic(uint32_t) *freed)
{
	void *memory = NULL;
	struct thing *thing;

	cr_assert_eq(posix_memalign(&memory, 64, sizeof(*thing)), 0);
	thing = memory;
	thing->freed = freed;
	thing->also = NULL;
	weiri_retired_init(&thing->retired, bytes, thing_reclaim);
	return thing;
}

static inline struct weiri_record *my_record(void)
{
	struct weiri_record *record = weiri_record_get();

	cr_assert_not_null(record);
	return record;
}

static inline void retire_things(unsigned count, size_t bytes, _Atomic(uint32_t) *freed)
{
	for (unsigned i = 0; i < count; i++)
		weiri_retire(my_record(), &make(bytes, freed)->retired);
}

static inline uint32_t count_of(_Atomic(uint32_t) *freed)
{
	return weiri_load_acquire(freed);
}

static inline struct weir_reclaim_stats stats_now(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	return stats;
}

static inline void flush_all(void)
{
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(patience_ns)), WEIR_OK);
}

static inline pthread_t start(void *(*body)(void *), void *context)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, body, context), 0);
	return thread;
}

static inline void join(pthread_t thread)
{
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* A latch: opened once, by any thread. */
static inline void latch_open(_Atomic(uint32_t) *latch)
{
	weiri_store_release(latch, 1u);
	weiri_futex_wake(latch, 1000);
}

static inline void latch_pass(_Atomic(uint32_t) *latch)
{
	uint64_t deadline = weir_deadline_in(patience_ns);

	while (weiri_load_acquire(latch) == 0)
		cr_assert(weiri_futex_wait(latch, 0, deadline), "the latch was not opened");
}

static inline void wait_until(_Atomic(uint32_t) *word, uint32_t value)
{
	uint64_t deadline = weir_deadline_in(patience_ns);
	uint32_t now;

	while ((now = weiri_load_acquire(word)) != value)
		cr_assert(weiri_futex_wait(word, now, deadline), "waited for %u, it is %u", value, now);
}

static inline void advance(_Atomic(uint32_t) *word)
{
	(void)weiri_fetch_add_acq_rel(word, 1u);
	weiri_futex_wake(word, 1000);
}

#endif
