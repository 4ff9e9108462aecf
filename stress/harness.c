/*
 * harness.c - threads, time, the watchdog and the end of a run; see harness.h.
 *
 * The harness may lock: it is no part of what is tested, and no operation under test runs with its lock held.
 */
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/futex.h"
#include "report.h"

enum { MAX_THREADS = 512 };

static const uint64_t hang_ns = 10000000000u;
static const uint64_t watch_every_ns = 100000000u;
static const uint64_t disturb_every_ns = 200000;
static const uint64_t settle_ns = 10000000000u;
static const uint64_t worth_a_sleep_ns = 20000, half_a_second_ns = 500000000;

/* The run that goes on. Changed by the scenario's own thread between runs; threads[] under the lock. */
static struct {
	const struct stress_options *options;
	const struct stress_scenario *scenario;
	uint64_t stream; /* seed of the scenario's streams */
	uint64_t begin_ns, end_ns;
	unsigned started;
	struct stress_thread self;
	pthread_mutex_t lock;
	struct stress_thread *threads[MAX_THREADS];
	uint64_t joined_operations;
	_Atomic(uint32_t) ended; /* futex word of the watchdog */
	_Atomic(uint32_t) failing;
	int disturbed;
	pthread_t disturber;
	struct stress_result results[STRESS_RESULTS];
	size_t result_count;
} run = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct stress_result *result(void)
{
	return &run.results[run.result_count];
}

/* -- randomness --------------------------------------------------------------------------------------------------------------- */

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

/* -- threads ------------------------------------------------------------------------------------------------------------------ */

const struct stress_scenario *stress_scenario(void)
{
	return run.scenario;
}

struct stress_thread *stress_self(void)
{
	return &run.self;
}

unsigned stress_threads(unsigned least)
{
	return run.options->threads > least ? run.options->threads : least;
}

uint64_t stress_scaled(uint64_t n)
{
	return n / STRESS_SLOWDOWN != 0 ? n / STRESS_SLOWDOWN : 1;
}

int stress_goes_on(void)
{
	return weir_now_ns() < run.end_ns;
}

double stress_seconds_left(void)
{
	uint64_t now = weir_now_ns();

	return now < run.end_ns ? (double)(run.end_ns - now) * 1e-9 : 0;
}

static void set_up_thread(struct stress_thread *thread, const char *role)
{
	thread->role = role;
	thread->number = run.started++;
	thread->random = stress_mix(run.stream + thread->number);
	weiri_store_relaxed(&thread->operations, 0u); /* [relaxed] not started yet */
	weiri_store_relaxed(&thread->doing, "starting");
}

static void *thread_main(void *argument)
{
	struct stress_thread *self = argument;

	self->body(self, self->context);
	stress_begin(self, "(ended)");
	(void)pthread_mutex_lock(&run.lock);
	self->ended = 1;
	(void)pthread_mutex_unlock(&run.lock);
	return NULL;
}

/* Under the lock throughout: who finds the thread in the table finds its id too. */
static void launch(struct stress_thread *thread)
{
	size_t place = 0;
	int failed;

	(void)pthread_mutex_lock(&run.lock);
	while (place < MAX_THREADS && run.threads[place] != NULL)
		place++;
	STRESS_CHECK(place < MAX_THREADS, "more than %d threads at once", (int)MAX_THREADS);
	failed = pthread_create(&thread->thread, NULL, thread_main, thread);
	STRESS_CHECK(failed == 0, "no thread could be started: %s", strerror(failed));
	run.threads[place] = thread;
	(void)pthread_mutex_unlock(&run.lock);
}

struct stress_thread *stress_start(const char *role, stress_body *body, void *context)
{
	void *memory = NULL;
	struct stress_thread *thread;
	int failed = posix_memalign(&memory, _Alignof(struct stress_thread), sizeof(struct stress_thread));

	STRESS_CHECK(failed == 0, "the harness has no memory for a thread");
	thread = memory;
	memset(thread, 0, sizeof(*thread));
	set_up_thread(thread, role);
	thread->body = body;
	thread->context = context;
	launch(thread);
	return thread;
}

void stress_join_one(struct stress_thread *thread)
{
	(void)pthread_join(thread->thread, NULL);
	(void)pthread_mutex_lock(&run.lock);
	for (size_t i = 0; i < MAX_THREADS; i++) {
		if (run.threads[i] == thread)
			run.threads[i] = NULL;
	}
	run.joined_operations += weiri_load_relaxed(&thread->operations); /* [relaxed] joined */
	(void)pthread_mutex_unlock(&run.lock);
	free(thread);
}

void stress_join(void)
{
	for (size_t i = 0; i < MAX_THREADS; i++) {
		if (run.threads[i] != NULL)
			stress_join_one(run.threads[i]);
	}
}

/* With the lock. */
static uint64_t count_operations(void)
{
	uint64_t sum = run.joined_operations + weiri_load_relaxed(&run.self.operations); /* [relaxed] a count */

	for (size_t i = 0; i < MAX_THREADS; i++) {
		if (run.threads[i] != NULL)
			sum += weiri_load_relaxed(&run.threads[i]->operations); /* [relaxed] a count */
	}
	return sum;
}

uint64_t stress_operations(void)
{
	uint64_t sum;

	(void)pthread_mutex_lock(&run.lock);
	sum = count_operations();
	(void)pthread_mutex_unlock(&run.lock);
	return sum;
}

/* -- time --------------------------------------------------------------------------------------------------------------------- */

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

static double seconds_so_far(void)
{
	return (double)(weir_now_ns() - run.begin_ns) * 1e-9;
}

/* -- the end of a run --------------------------------------------------------------------------------------------------------- */

/* The first to come here ends the process; others wait for that. */
static void become_the_one_that_fails(void)
{
	/* [relaxed] nothing is handed over. */
	if (weiri_exchange_relaxed(&run.failing, 1u) == 0)
		return;
	for (;;)
		(void)pause();
}

static _Noreturn void end_process(const char *outcome, enum stress_exit code)
{
	struct stress_result *ours = result();

	ours->outcome = outcome;
	ours->seconds = seconds_so_far();
	/* The lock may be held by the thread that a signal handler interrupted; the sum is worth less than the report. */
	if (pthread_mutex_trylock(&run.lock) == 0) {
		ours->operations = count_operations();
		(void)pthread_mutex_unlock(&run.lock);
	}
	stress_print_failure(ours, run.options);
	if (run.options->json != NULL)
		(void)stress_write_json(run.options->json, run.options, run.results, run.result_count + 1);
	/* Not _exit(): ThreadSanitizer would report the threads that stand as leaked, and change the code. */
	(void)syscall(SYS_exit_group, (int)code);
	abort();
}

_Noreturn void stress_fail(const char *format, ...)
{
	va_list arguments;

	become_the_one_that_fails();
	va_start(arguments, format);
	(void)vsnprintf(result()->message, sizeof(result()->message), format, arguments);
	va_end(arguments);
	end_process("wrong", STRESS_WRONG);
}

void stress_note(const char *name, uint64_t value)
{
	if (result()->notes < STRESS_NOTES)
		result()->note[result()->notes++] = (struct stress_note_line){name, value};
}

void stress_skip(const char *why)
{
	result()->outcome = "skipped";
	(void)snprintf(result()->message, sizeof(result()->message), "%s", why);
}

/* -- the watchdog ------------------------------------------------------------------------------------------------------------- */

/* Appends to a text that has room for size bytes. */
static void append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

static void describe_thread(const struct stress_thread *thread, char *text, size_t size)
{
	/* [relaxed] for a report. */
	append(text, size, "\n          %-12s %3u  %10" PRIu64 " operations, last: %s", thread->role, thread->number,
	       weiri_load_relaxed(&thread->operations), weiri_load_relaxed(&thread->doing));
}

static _Noreturn void report_hang(void)
{
	char *text = result()->message;
	size_t size = sizeof(result()->message);

	become_the_one_that_fails();
	(void)snprintf(text, size, "no operation completed for %" PRIu64 " s", hang_ns / 1000000000u);
	(void)pthread_mutex_lock(&run.lock);
	describe_thread(&run.self, text, size);
	for (size_t i = 0; i < MAX_THREADS; i++) {
		if (run.threads[i] != NULL)
			describe_thread(run.threads[i], text, size);
	}
	(void)pthread_mutex_unlock(&run.lock);
	end_process("hang", STRESS_HANG);
}

static void *watch(void *unused)
{
	uint64_t seen = 0, since = weir_now_ns();

	(void)unused;
	/* [acquire] pairs with the release in stop_watching(). */
	while (weiri_load_acquire(&run.ended) == 0) {
		uint64_t now = weir_now_ns(), operations = stress_operations();

		if (operations != seen) {
			seen = operations;
			since = now;
		} else if (now - since > hang_ns) {
			report_hang();
		}
		(void)weiri_futex_wait(&run.ended, 0, now + watch_every_ns);
	}
	return NULL;
}

static pthread_t start_watching(void)
{
	pthread_t watcher;

	weiri_store_relaxed(&run.ended, 0u); /* [relaxed] before the thread exists */
	STRESS_CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0, "the watchdog could not be started");
	return watcher;
}

static void stop_watching(pthread_t watcher)
{
	weiri_store_release(&run.ended, 1u); /* [release] pairs with watch() */
	weiri_futex_wake(&run.ended, 1);
	(void)pthread_join(watcher, NULL);
	if (run.disturbed)
		(void)pthread_join(run.disturber, NULL);
	run.disturbed = 0;
}

/* -- the disturber ------------------------------------------------------------------------------------------------------------ */

enum { DISTURBANCE = SIGUSR2 };

/* On a thread of the scenario, between any two instructions. */
static void be_held(int signal_number)
{
	int saved_errno = errno;
	/* Some are only overtaken, some held long enough for collections to pass. */
	uint64_t draw = stress_mix(weir_now_ns());
	struct timespec pause_for = {0, (long)(draw % 4 == 0 ? draw % 400000 : draw % 20000)};

	(void)signal_number;
	(void)nanosleep(&pause_for, NULL);
	errno = saved_errno;
}

/* The lock keeps the thread from ending while the signal is sent. */
static void disturb_one(uint64_t draw)
{
	struct stress_thread *victim;

	(void)pthread_mutex_lock(&run.lock);
	victim = run.threads[draw % MAX_THREADS];
	for (size_t i = 0; i < MAX_THREADS && (victim == NULL || victim->ended); i++)
		victim = run.threads[(draw + i) % MAX_THREADS];
	if (victim != NULL && !victim->ended)
		(void)pthread_kill(victim->thread, DISTURBANCE);
	(void)pthread_mutex_unlock(&run.lock);
}

static void *disturb(void *unused)
{
	uint64_t random = run.stream;

	(void)unused;
	/* [acquire] pairs with the release in stop_watching(). */
	while (weiri_load_acquire(&run.ended) == 0) {
		random += UINT64_C(0x9e3779b97f4a7c15);
		disturb_one(stress_mix(random));
		(void)weiri_futex_wait(&run.ended, 0, weir_deadline_in(stress_mix(random) % disturb_every_ns));
	}
	return NULL;
}

void stress_disturb(void)
{
	struct sigaction action = {.sa_handler = be_held, .sa_flags = SA_RESTART};

	STRESS_CHECK(sigaction(DISTURBANCE, &action, NULL) == 0, "no signal handler could be set");
	STRESS_CHECK(pthread_create(&run.disturber, NULL, disturb, NULL) == 0, "the disturber could not be started");
	run.disturbed = 1;
}

/* -- a run -------------------------------------------------------------------------------------------------------------------- */

/* A leak, or a version that somebody still pins though all handles are back. */
static void check_nothing_left(void)
{
	struct weir_reclaim_stats stats = {.struct_size = sizeof(stats)};
	enum weir_status status;

	stress_begin(&run.self, "flushing");
	status = weir_reclaim_flush(weir_deadline_in(settle_ns));
	(void)weir_reclaim_get_stats(&stats);
	STRESS_CHECK(status == WEIR_OK && stats.live_versions == 0 && stats.retired_bytes == 0,
	             "after the end, flush says %s; %" PRIu64 " versions exist and %" PRIu64 " bytes are retired",
	             weir_status_name(status), stats.live_versions, stats.retired_bytes);
}

void stress_run(const struct stress_scenario *scenario, const struct stress_options *options)
{
	pthread_t watcher;

	STRESS_CHECK(run.result_count < STRESS_RESULTS, "more than %d scenarios", (int)STRESS_RESULTS);
	run.options = options;
	run.scenario = scenario;
	*result() = (struct stress_result){.scenario = scenario->name, .outcome = "ok"};
	run.stream = stream_of(scenario->name, options->seed);
	run.started = 0;
	run.joined_operations = 0;
	set_up_thread(&run.self, "scenario");
	run.begin_ns = weir_now_ns();
	run.end_ns = run.begin_ns + (uint64_t)(options->seconds * 1e9);
	watcher = start_watching();
	scenario->run();
	stress_join();
	check_nothing_left();
	stop_watching(watcher);
	result()->seconds = seconds_so_far();
	result()->operations = stress_operations();
	stress_print_result(result());
	run.result_count++;
}

int stress_finish(const struct stress_options *options)
{
	if (options->json == NULL)
		return 1;
	return stress_write_json(options->json, options, run.results, run.result_count);
}
