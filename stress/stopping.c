/*
 * stopping.c - see stopping.h.
 */
#include "stopping.h"

#include <inttypes.h>
#include <sched.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "stop.h"

enum { WARM_UP = 50, CONTROL_STOPS = 20 };

struct worker {
	const struct stopping *subject;
	unsigned index;
	WEIRI_ALIGNED_APART _Atomic(uint64_t) completed[STOPPING_KINDS];
};

static const uint64_t patience_ns = 100000000000u, grace_ns = 40000000, look_again_ns = 50000;
/*
 * A control has frozen if nothing moves for frozen_ns. At least once it must freeze for
 * surely_frozen_ns.
 */
static const uint64_t frozen_ns = 20000000, surely_frozen_ns = 1000000000, must_freeze_within_ns = 300000000000u;

static struct worker workers[STOPPING_WORKERS];
static struct stress_thread *threads[STOPPING_WORKERS];
static _Atomic(uint32_t) quit;

/* -- workers ----------------------------------------------------------------------------------- */

static void work(struct stress_thread *self, void *context)
{
	struct worker *worker = context;
	unsigned spins = 0;

	while (weiri_load_relaxed(&quit) == 0) { /* [relaxed] joined afterwards */
		int kind = worker->subject->work(self, worker->index);

		if (kind >= 0) {
			_Atomic(uint64_t) *completed = &worker->completed[kind];

			/* [relaxed] a count */
			weiri_store_relaxed(completed, weiri_load_relaxed(completed) + 1);
			stress_end(self, 1);
			spins = 0;
		} else {
			stress_back_off(&spins);
		}
		if (stress_one_in(self, 512))
			(void)sched_yield(); /* a stop must not wait long for its victim to get a processor */
		stress_stop_here();
	}
}

/* The calls that a worker has begun. A worker that stands still in a call begins no more. */
static uint64_t begun_by(unsigned worker)
{
	return weiri_load_relaxed(&threads[worker]->begun); /* [relaxed] a count */
}

static void start_workers(const struct stopping *subject)
{
	weiri_store_relaxed(&quit, 0u); /* [relaxed] before the threads exist */
	for (unsigned i = 0; i < subject->workers; i++) {
		workers[i] = (struct worker){.subject = subject, .index = i};
		threads[i] = stress_start("worker", work, &workers[i]);
	}
	/*
	 * A thread's first call registers it. If it were stopped there, inside malloc(), its lock would
	 * block the other threads.
	 */
	for (unsigned i = 0; i < subject->workers; i++) {
		while (begun_by(i) < WARM_UP)
			stress_let_pass(look_again_ns);
	}
}

static void stop_workers(void)
{
	weiri_store_relaxed(&quit, 1u); /* [relaxed] joined afterwards */
	stress_join();
}

/* -- stops ------------------------------------------------------------------------------------- */

/* What the other threads had done by the moment of a stop. */
struct moment {
	const struct stopping *subject;
	unsigned victim;
	const char *doing;
	uint64_t completed[STOPPING_KINDS];
};

static uint64_t completed_by_others(const struct moment *moment, unsigned kind)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < moment->subject->workers; i++)
		/* [relaxed] a count */
		sum += i != moment->victim ? weiri_load_relaxed(&workers[i].completed[kind]) : 0;
	return sum;
}

/*
 * Picks a worker that is on a processor now, so that the signal arrives inside a call; any worker
 * if there is none.
 */
static unsigned pick_running(struct stress_thread *self, unsigned count)
{
	unsigned first = (unsigned)stress_below(self, count);
	uint64_t before[STOPPING_WORKERS];

	for (unsigned i = 0; i < count; i++)
		before[i] = begun_by(i);
	stress_let_pass(3000);
	for (unsigned i = 0; i < count; i++) {
		if (begun_by((first + i) % count) != before[(first + i) % count])
			return (first + i) % count;
	}
	return first;
}

static struct moment stop_one(struct stress_thread *self, const struct stopping *subject)
{
	struct moment moment = {.subject = subject};

	stress_let_pass(stress_below(self, 100000));
	moment.victim = pick_running(self, subject->workers);
	stress_stop(threads[moment.victim]);
	moment.doing = weiri_load_relaxed(&threads[moment.victim]->doing); /* [relaxed] it stands */
	for (unsigned kind = 0; kind < STOPPING_KINDS; kind++)
		moment.completed[kind] = completed_by_others(&moment, kind);
	return moment;
}

/* Returns 0 if the other threads did not complete enough operations of the kind in this time. */
static int goes_on(const struct moment *moment, unsigned kind, uint64_t within_ns)
{
	uint64_t deadline = weir_deadline_in(within_ns), wanted = stress_scaled(moment->subject->wanted);

	while (completed_by_others(moment, kind) - moment->completed[kind] < wanted) {
		if (weir_now_ns() > deadline)
			return 0;
		stress_let_pass(look_again_ns);
	}
	return 1;
}

/*
 * Counts how many of the other threads stand still from now on: those that begin no call until the
 * time has passed. It returns earlier if at most `few` are left. The time counts from now on, not
 * from the stop, because they may have begun later what blocks them.
 */
static unsigned await_standing(const struct moment *moment, unsigned few, uint64_t within_ns)
{
	uint64_t deadline = weir_deadline_in(within_ns), begun[STOPPING_WORKERS];
	unsigned standing;

	for (unsigned i = 0; i < moment->subject->workers; i++)
		begun[i] = begun_by(i);
	for (;;) {
		standing = 0;
		for (unsigned i = 0; i < moment->subject->workers; i++)
			standing += i != moment->victim && begun_by(i) == begun[i];
		if (standing <= few || weir_now_ns() > deadline)
			return standing;
		stress_let_pass(look_again_ns);
	}
}

static void release(struct stress_thread *self, const struct moment *moment, unsigned standing)
{
	stress_stop_release();
	stress_count_stop(moment->subject->name, moment->doing, standing);
	stress_end(self, 1);
}

/* -- structures that must go on ---------------------------------------------------------------- */

static void check_goes_on(const struct moment *moment, unsigned kind, uint64_t stops)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	if (goes_on(moment, kind, patience_ns))
		return;
	(void)weir_reclaim_get_stats(&stats);
	stress_fail("%s: a thread stopped in \"%s\" (stop %" PRIu64 ") blocked all others: not even %" PRIu64
	            " of \"%s\" in %" PRIu64 " s; %" PRIu64 " bytes are retired, the budget is %" PRIu64,
	            moment->subject->name, moment->doing, stops, stress_scaled(moment->subject->wanted),
	            moment->subject->kind[kind], patience_ns / 1000000000u, stats.retired_bytes, weir_reclaim_budget());
}

static void stop_once(struct stress_thread *self, const struct stopping *subject, struct stopping_tally *tally)
{
	struct moment moment = stop_one(self, subject);
	unsigned standing;

	for (unsigned kind = 0; kind < subject->must; kind++)
		check_goes_on(&moment, kind, tally->stops);
	standing = await_standing(&moment, 0, grace_ns);
	if (standing > subject->may_stand)
		standing = await_standing(&moment, subject->may_stand, patience_ns);
	STRESS_CHECK(standing <= subject->may_stand, "%s: a thread stopped in \"%s\" (stop %" PRIu64 ") blocks %u others",
	             subject->name, moment.doing, tally->stops, standing);
	for (unsigned kind = 0; kind < STOPPING_KINDS; kind++)
		tally->unmoved[kind] += completed_by_others(&moment, kind) == moment.completed[kind];
	release(self, &moment, standing);
	tally->stops++;
}

struct stopping_tally stopping_must_go_on(struct stress_thread *self, const struct stopping *subject, uint64_t least,
                                          uint64_t until)
{
	struct stopping_tally tally = {0};

	start_workers(subject);
	while (tally.stops < least || weir_now_ns() < until)
		stop_once(self, subject, &tally);
	stop_workers();
	return tally;
}

/* -- controls that must freeze ----------------------------------------------------------------- */

static int is_frozen(const struct moment *moment, uint64_t for_ns)
{
	for (unsigned kind = 0; kind < moment->subject->must; kind++) {
		if (!goes_on(moment, kind, for_ns))
			return 1;
	}
	return 0;
}

void stopping_must_freeze(struct stress_thread *self, const struct stopping *subject, uint64_t until)
{
	uint64_t latest = weir_deadline_in(must_freeze_within_ns);
	/* ThreadSanitizer delivers signals only between calls, where no thread holds anything. */
	int surely = STRESS_TSAN;
	uint64_t stops = 0;

	start_workers(subject);
	do {
		struct moment moment = stop_one(self, subject);
		int frozen = is_frozen(&moment, frozen_ns);

		if (frozen && !surely)
			surely = frozen = is_frozen(&moment, surely_frozen_ns);
		release(self, &moment, frozen ? await_standing(&moment, 0, frozen_ns) : 0);
	} while (++stops < CONTROL_STOPS || weir_now_ns() < until || (!surely && weir_now_ns() < latest));
	stop_workers();
	STRESS_CHECK(surely, "%s never froze beside a stopped thread, so the check of the others proves nothing",
	             subject->name);
}

uint64_t stopping_part_end(unsigned parts)
{
	return weir_deadline_in((uint64_t)(stress_seconds_left() * 1e9 / parts));
}
