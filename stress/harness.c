/*
 * harness.c - threads, randomness, time, and the run of a scenario; see harness.h.
 *
 * The harness may lock: it is not part of what is tested, and no operation under test runs while
 * its lock is held.
 */
#include "harness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "run.h"

static const uint64_t settle_ns = 100000000000u;
static const uint64_t worth_a_sleep_ns = 20000, half_a_second_ns = 500000000;

WEIRI_TLS const struct stress_thread *stress_current;
struct stress_run stress_now = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct stress_result *stress_result(void)
{
	return &stress_now.results[stress_now.result_count];
}

/* -- randomness -------------------------------------------------------------------------------- */

/* The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
uint64_t stress_mix(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

uint64_t stress_random(struct stress_thread *self)
{
	self->random += UINT64_C(0x9e3779b97f4a7c15);
	return stress_mix(self->random);
}

uint64_t stress_below(struct stress_thread *self, uint64_t n)
{
	return stress_random(self) % n;
}

static uint64_t stream_of(const char *scenario, uint64_t seed)
{
	uint64_t stream = stress_mix(seed + 1);

	for (; *scenario != '\0'; scenario++)
		stream = stress_mix(stream ^ (unsigned char)*scenario);
	return stream;
}

/* -- threads ----------------------------------------------------------------------------------- */

const struct stress_scenario *stress_scenario(void)
{
	return stress_now.scenario;
}

struct stress_thread *stress_self(void)
{
	return &stress_now.self;
}

unsigned stress_threads(unsigned least)
{
	return stress_now.options->threads > least ? stress_now.options->threads : least;
}

uint64_t stress_scaled(uint64_t n)
{
	return n / STRESS_SLOWDOWN != 0 ? n / STRESS_SLOWDOWN : 1;
}

int stress_goes_on(void)
{
	return weir_now_ns() < stress_now.end_ns;
}

double stress_seconds_left(void)
{
	uint64_t now = weir_now_ns();

	return now < stress_now.end_ns ? (double)(stress_now.end_ns - now) * 1e-9 : 0;
}

static void set_up_thread(struct stress_thread *thread, const char *role)
{
	memset(thread, 0, sizeof(*thread));
	thread->role = role;
	thread->number = stress_now.started++;
	thread->random = stress_mix(stress_now.stream + thread->number);
	weiri_store_relaxed(&thread->doing, "starting"); /* [relaxed] not started yet */
	thread->begun_ns = thread->completed_ns = weir_now_ns();
}

static void *thread_main(void *argument)
{
	struct stress_thread *self = argument;

	stress_current = self;
	/* [relaxed] for a report */
	weiri_store_relaxed(&self->kernel_id, (int32_t)syscall(SYS_gettid));
	self->body(self, self->context);
	stress_begin(self, "(ended)");
	(void)pthread_mutex_lock(&stress_now.lock);
	self->ended = 1;
	(void)pthread_mutex_unlock(&stress_now.lock);
	return NULL;
}

/* Under the lock throughout: a reader that finds the thread in the table also finds its id. */
static void launch(struct stress_thread *thread)
{
	size_t place = 0;
	int failed;

	(void)pthread_mutex_lock(&stress_now.lock);
	while (place < STRESS_MAX_THREADS && stress_now.threads[place] != NULL)
		place++;
	STRESS_CHECK(place < STRESS_MAX_THREADS, "more than %d threads at once", (int)STRESS_MAX_THREADS);
	failed = pthread_create(&thread->thread, NULL, thread_main, thread);
	STRESS_CHECK(failed == 0, "cannot start a thread: %s", strerror(failed));
	stress_now.threads[place] = thread;
	(void)pthread_mutex_unlock(&stress_now.lock);
}

struct stress_thread *stress_start(const char *role, stress_body *body, void *context)
{
	void *memory = NULL;
	struct stress_thread *thread;
	int failed = posix_memalign(&memory, _Alignof(struct stress_thread), sizeof(struct stress_thread));

	STRESS_CHECK(failed == 0, "the harness has no memory for a thread");
	thread = memory;
	set_up_thread(thread, role);
	thread->body = body;
	thread->context = context;
	launch(thread);
	return thread;
}

void stress_join_one(struct stress_thread *thread)
{
	(void)pthread_join(thread->thread, NULL);
	(void)pthread_mutex_lock(&stress_now.lock);
	for (size_t i = 0; i < STRESS_MAX_THREADS; i++) {
		if (stress_now.threads[i] == thread)
			stress_now.threads[i] = NULL;
	}
	stress_now.joined_operations += weiri_load_relaxed(&thread->operations); /* [relaxed] joined */
	(void)pthread_mutex_unlock(&stress_now.lock);
	free(thread);
}

void stress_join(void)
{
	for (size_t i = 0; i < STRESS_MAX_THREADS; i++) {
		if (stress_now.threads[i] != NULL)
			stress_join_one(stress_now.threads[i]);
	}
}

struct stress_thread *stress_thread_in(size_t place)
{
	return place == 0 ? &stress_now.self : stress_now.threads[place - 1];
}

uint64_t stress_count_operations(void)
{
	uint64_t sum = stress_now.joined_operations;

	for (size_t i = 0; i <= STRESS_MAX_THREADS; i++) {
		const struct stress_thread *thread = stress_thread_in(i);

		if (thread != NULL)
			sum += weiri_load_relaxed(&thread->operations); /* [relaxed] a count */
	}
	return sum;
}

uint64_t stress_operations(void)
{
	uint64_t sum;

	(void)pthread_mutex_lock(&stress_now.lock);
	sum = stress_count_operations();
	(void)pthread_mutex_unlock(&stress_now.lock);
	return sum;
}

/* -- time -------------------------------------------------------------------------------------- */

void stress_back_off(unsigned *spins)
{
	if (++*spins < 16)
		weiri_pause();
	else
		(void)sched_yield();
}

void stress_let_pass(uint64_t nanoseconds)
{
	uint64_t until = weir_deadline_in(nanoseconds), now;

	while ((now = weir_now_ns()) < until) {
		struct timespec rest = {0, (long)(until - now < half_a_second_ns ? until - now : half_a_second_ns)};

		if (until - now > worth_a_sleep_ns)
			(void)nanosleep(&rest, NULL);
		else
			weiri_pause();
	}
}

double stress_seconds_so_far(void)
{
	return (double)(weir_now_ns() - stress_now.begin_ns) * 1e-9;
}

int stress_read_file(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, size - 1) : -1;

	if (file >= 0)
		(void)close(file);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* -- figures ----------------------------------------------------------------------------------- */

void stress_note(const char *name, uint64_t value)
{
	if (stress_result()->notes < STRESS_NOTES)
		stress_result()->note[stress_result()->notes++] = (struct stress_note_line){name, value};
}

void stress_count_stop(const char *structure, const char *operation, unsigned froze)
{
	struct stress_result *result = stress_result();
	struct stress_stops *stops = result->stops;

	while (stops < result->stops + result->stop_lines &&
	       (strcmp(stops->structure, structure) != 0 || strcmp(stops->operation, operation) != 0))
		stops++;
	if (stops == result->stops + result->stop_lines) {
		STRESS_CHECK(result->stop_lines < STRESS_STOPS, "threads were stopped in more than %d kinds of operations",
		             (int)STRESS_STOPS);
		result->stop_lines++;
		*stops = (struct stress_stops){.structure = structure, .operation = operation};
	}
	stops->froze[froze < STRESS_FROZEN ? froze : STRESS_FROZEN - 1]++;
}

void stress_skip(const char *why)
{
	stress_result()->outcome = "skipped";
	(void)snprintf(stress_result()->message, sizeof(stress_result()->message), "%s", why);
}

/* -- a run ------------------------------------------------------------------------------------- */

/* Finds leaks, and versions that are still pinned although all handles were released. */
static void check_nothing_left(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};
	enum weir_status status;

	stress_begin(&stress_now.self, "flushing");
	status = weir_reclaim_flush(weir_deadline_in(settle_ns));
	(void)weir_reclaim_get_stats(&stats);
	STRESS_CHECK(status == WEIR_OK && stats.live_versions == 0 && stats.retired_bytes == 0,
	             "after the end, flush returns %s; %" PRIu64 " versions exist and %" PRIu64 " bytes are retired",
	             weir_status_name(status), stats.live_versions, stats.retired_bytes);
}

void stress_run(const struct stress_scenario *scenario, const struct stress_options *options)
{
	pthread_t watcher;

	STRESS_CHECK(stress_now.result_count < STRESS_RESULTS, "more than %d scenarios", (int)STRESS_RESULTS);
	stress_now.options = options;
	stress_now.scenario = scenario;
	*stress_result() = (struct stress_result){.scenario = scenario->name, .outcome = "ok"};
	stress_now.stream = stream_of(scenario->name, options->seed);
	stress_now.started = 0;
	stress_now.joined_operations = 0;
	set_up_thread(&stress_now.self, "scenario");
	/* [relaxed] for a report */
	weiri_store_relaxed(&stress_now.self.kernel_id, (int32_t)syscall(SYS_gettid));
	stress_now.begin_ns = weir_now_ns();
	stress_now.end_ns = stress_now.begin_ns + (uint64_t)(options->seconds * 1e9);
	watcher = stress_start_watching();
	scenario->run();
	stress_join();
	check_nothing_left();
	stress_stop_watching(watcher);
	stress_stop_disturbing();
	stress_result()->seconds = stress_seconds_so_far();
	stress_result()->operations = stress_operations();
	stress_print_result(stress_result());
	stress_now.scenario = NULL;
	stress_now.result_count++;
}

int stress_finish(const struct stress_options *options)
{
	if (options->json == NULL)
		return 1;
	return stress_write_json(options->json, options, stress_now.results, stress_now.result_count);
}
