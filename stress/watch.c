/*
 * watch.c - the watchdog: checks all threads many times per second, draws the live line, and ends a
 * run in which nothing completes any longer.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/dump.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/futex.h"
#include "run.h"

static const uint64_t look_every_ns = 20000000, weigh_every_ns = 250000000;

/* Used only by the watchdog. */
struct watch {
	uint64_t operations, changed_ns; /* of all threads, and when this number last changed */
	uint64_t weighed_ns, drawn_ns, drawn_operations;
	uint64_t versions, retired, resident; /* the values of the last look */
	int drawn, on_terminal;
};

/* -- what the watchdog looks at ---------------------------------------------------------------- */

/*
 * Records when the current call of each thread began. The times are only as precise as the interval
 * between looks, but the calls need not read the clock.
 */
static uint64_t look_at_threads(uint64_t now)
{
	uint64_t sum;

	(void)pthread_mutex_lock(&stress_now.lock);
	for (size_t i = 0; i <= STRESS_MAX_THREADS; i++) {
		struct stress_thread *thread = stress_thread_in(i);
		/* [relaxed] counts */
		uint64_t begun = thread != NULL ? weiri_load_relaxed(&thread->begun) : 0;
		uint64_t operations = thread != NULL ? weiri_load_relaxed(&thread->operations) : 0;

		if (thread != NULL && begun != thread->seen_begun) {
			thread->seen_begun = begun;
			thread->begun_ns = now;
		}
		if (thread != NULL && operations != thread->seen_operations) {
			thread->seen_operations = operations;
			thread->completed_ns = now;
		}
	}
	sum = stress_count_operations();
	(void)pthread_mutex_unlock(&stress_now.lock);
	return sum;
}

uint64_t stress_resident_bytes(void)
{
	char text[128], *after;

	if (!stress_read_file("/proc/self/statm", text, sizeof(text)))
		return 0;
	(void)strtoull(text, &after, 10);
	return strtoull(after, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void keep_largest(_Atomic(uint64_t) *largest, uint64_t value)
{
	/* [relaxed] only the watchdog writes them. */
	if (value > weiri_load_relaxed(largest))
		weiri_store_relaxed(largest, value);
}

static void weigh(struct watch *watch, uint64_t now)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	(void)weir_reclaim_get_stats(&stats);
	watch->versions = stats.live_versions;
	watch->retired = stats.retired_bytes;
	watch->resident = stress_resident_bytes();
	watch->weighed_ns = now;
	keep_largest(&stress_result()->most_versions, watch->versions);
	keep_largest(&stress_result()->most_retired, watch->retired);
	keep_largest(&stress_result()->most_resident, watch->resident);
}

/* -- the live line ----------------------------------------------------------------------------- */

static void draw(struct watch *watch, uint64_t now)
{
	double since = (double)(now - watch->drawn_ns) * 1e-9;
	const struct stress_result *result = stress_result();

	(void)fprintf(
		stderr,
		"%s%-20s %6.1f s left %11.0f operations/s  longest stall %.3f s  %" PRIu64 " versions  %.1f KiB retired  "
		"%.1f MiB resident%s",
		watch->on_terminal ? "\r" : "", result->scenario, stress_seconds_left(),
		(double)(watch->operations - watch->drawn_operations) / since,
		(double)weiri_load_relaxed(&result->longest_stall_ns) * 1e-9, watch->versions, (double)watch->retired / 1024,
		(double)watch->resident / 1048576, watch->on_terminal ? "\033[K" : "\n");
	(void)fflush(stderr);
	watch->drawn = 1;
	watch->drawn_ns = now;
	watch->drawn_operations = watch->operations;
}

static void erase(const struct watch *watch)
{
	if (watch->drawn && watch->on_terminal) {
		(void)fputs("\r\033[K", stderr);
		(void)fflush(stderr);
	}
}

/* -- the watch --------------------------------------------------------------------------------- */

static _Noreturn void report_hang(const struct watch *watch)
{
	struct stress_result *result = stress_result();
	size_t used;

	stress_become_the_one_that_fails();
	erase(watch);
	(void)snprintf(result->message, sizeof(result->message),
	               "no operation completed for %g s; which thread waits for which:", stress_now.options->hang_seconds);
	used = strlen(result->message);
	(void)pthread_mutex_lock(&stress_now.lock);
	stress_describe_waits(result->message + used, sizeof(result->message) - used);
	(void)pthread_mutex_unlock(&stress_now.lock);
	(void)weir_dump(STDERR_FILENO);
	stress_end_process("hang", STRESS_HANG);
}

static void look(struct watch *watch)
{
	const struct stress_options *options = stress_now.options;
	uint64_t now = weir_now_ns(), operations = look_at_threads(now);

	if (operations != watch->operations) {
		watch->operations = operations;
		watch->changed_ns = now;
	}
	keep_largest(&stress_result()->longest_stall_ns, now - watch->changed_ns);
	if (now - watch->weighed_ns > weigh_every_ns)
		weigh(watch, now);
	if ((double)(now - watch->changed_ns) > options->hang_seconds * 1e9)
		report_hang(watch);
	if (options->live_seconds > 0 && (double)(now - watch->drawn_ns) > options->live_seconds * 1e9)
		draw(watch, now);
}

static void *watch_all(void *unused)
{
	uint64_t now = weir_now_ns();
	struct watch watch = {.changed_ns = now, .drawn_ns = now, .on_terminal = isatty(STDERR_FILENO)};

	(void)unused;
	/*
	 * Gives this thread its record now, because a thread that hangs may hold the lock of malloc()
	 * later.
	 */
	(void)weir_reclaim_flush(0);
	/* [acquire] pairs with the release in stress_stop_watching(). */
	while (weiri_load_acquire(&stress_now.ended) == 0) {
		look(&watch);
		(void)weiri_futex_wait(&stress_now.ended, 0, weir_deadline_in(look_every_ns));
	}
	erase(&watch);
	return NULL;
}

pthread_t stress_start_watching(void)
{
	pthread_t watcher;

	weiri_store_relaxed(&stress_now.ended, 0u); /* [relaxed] before the thread exists */
	STRESS_CHECK(pthread_create(&watcher, NULL, watch_all, NULL) == 0, "cannot start the watchdog");
	return watcher;
}

void stress_stop_watching(pthread_t watcher)
{
	weiri_store_release(&stress_now.ended, 1u); /* [release] pairs with watch_all() */
	weiri_futex_wake(&stress_now.ended, INT_MAX);
	(void)pthread_join(watcher, NULL);
}
