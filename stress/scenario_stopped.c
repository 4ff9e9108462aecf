/*
 * scenario_stopped.c - a thread that stops at a random instruction, for ever as far as the others can tell, stops nobody else.
 *
 * Four threads work on one structure. Again and again one of them is stopped at a random moment (stop.h); the other three must complete
 * so many operations each kind before it goes on. This is what "lock-free" says. Beside the rings a ring under a mutex goes
 * through the same: it must freeze now and then, which shows that the check can fail.
 */
#include "harness.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <weir/reclaim.h>
#include <weir/ring.h>
#include <weir/var.h>

#include "blocks.h"
#include "scenarios.h"
#include "stop.h"

enum { WORKERS = 4, KINDS = 2, WARM_UP = 50 };

/* One structure under test. `work` does one operation and says of which kind it was when it completed, else -1. */
struct subject {
	const char *name;
	const char *kind[KINDS];
	int (*work)(struct stress_thread *self);
	uint64_t wanted;      /* operations of each kind that the others must complete */
	uint64_t patience_ns; /* within this */
};

struct worker {
	const struct subject *subject;
	WEIRI_ALIGNED_APART _Atomic(uint64_t) completed[KINDS];
};

static const uint64_t look_again_ns = 50000;

static struct worker workers[WORKERS];
static struct stress_thread *threads[WORKERS];
static _Atomic(uint32_t) quit;

static void work(struct stress_thread *self, void *context)
{
	struct worker *worker = context;
	unsigned spins = 0;

	while (weiri_load_relaxed(&quit) == 0) { /* [relaxed] joined afterwards */
		int kind = worker->subject->work(self);

		if (kind >= 0) {
			_Atomic(uint64_t) *completed = &worker->completed[kind];

			weiri_store_relaxed(completed, weiri_load_relaxed(completed) + 1); /* [relaxed] a count */
			stress_end(self, 1);
			spins = 0;
		} else {
			stress_back_off(&spins);
		}
		if (stress_one_in(self, 512))
			(void)sched_yield(); /* more threads than processors: otherwise a stop waits for its victim's turn */
		stress_stop_here();
	}
}

static void start_workers(const struct subject *subject)
{
	weiri_store_relaxed(&quit, 0u); /* [relaxed] before the threads exist */
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].subject = subject;
		for (unsigned kind = 0; kind < KINDS; kind++)
			weiri_store_relaxed(&workers[i].completed[kind], 0u);
		threads[i] = stress_start("worker", work, &workers[i]);
	}
	/* A thread's first call registers it: stopped there, inside malloc, it would stop the others by malloc's lock. */
	for (unsigned i = 0; i < WORKERS; i++) {
		while (weiri_load_relaxed(&threads[i]->operations) < WARM_UP) /* [relaxed] a count */
			stress_let_pass(look_again_ns);
	}
}

static void stop_workers(void)
{
	weiri_store_relaxed(&quit, 1u); /* [relaxed] joined afterwards */
	stress_join();
}

static uint64_t completed_by_others(unsigned victim, unsigned kind)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		sum += i != victim ? weiri_load_relaxed(&workers[i].completed[kind]) : 0; /* [relaxed] a count */
	return sum;
}

/* Which kind of operation the others could not complete, or -1: all went on. */
static int frozen_kind(const struct subject *subject, unsigned victim, const uint64_t before[])
{
	uint64_t deadline = weir_deadline_in(subject->patience_ns);

	for (unsigned kind = 0; kind < KINDS; kind++) {
		uint64_t wanted = stress_scaled(subject->wanted);

		while (completed_by_others(victim, kind) - before[kind] < wanted) {
			if (weir_now_ns() > deadline)
				return (int)kind;
			stress_let_pass(look_again_ns);
		}
	}
	return -1;
}

/* For a report: what the victim was doing, and how much memory waited while it stood. */
struct stop {
	const char *doing;
	uint64_t retired;
};

static uint64_t retired_bytes(void)
{
	struct weir_reclaim_stats stats = {.struct_size = sizeof(stats)};

	(void)weir_reclaim_get_stats(&stats);
	return stats.retired_bytes;
}

/* A worker that is on a processor now, so that the signal meets it inside an operation; any if there is none. */
static unsigned pick_running(struct stress_thread *self)
{
	unsigned first = (unsigned)stress_below(self, WORKERS);
	uint64_t before[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++)
		before[i] = weiri_load_relaxed(&threads[i]->operations); /* [relaxed] a count */
	stress_let_pass(3000);
	for (unsigned i = 0; i < WORKERS; i++) {
		unsigned worker = (first + i) % WORKERS;

		if (weiri_load_relaxed(&threads[worker]->operations) != before[worker]) /* [relaxed] the same */
			return worker;
	}
	return first;
}

/* Stops one worker once; which kind froze, or -1. */
static int try_once(struct stress_thread *self, const struct subject *subject, struct stop *stop)
{
	uint64_t before[KINDS];
	unsigned victim;
	int frozen;

	stress_let_pass(stress_below(self, 100000));
	victim = pick_running(self);
	stress_stop(threads[victim]);
	stop->doing = weiri_load_relaxed(&threads[victim]->doing); /* [relaxed] for a report */
	for (unsigned kind = 0; kind < KINDS; kind++)
		before[kind] = completed_by_others(victim, kind);
	frozen = frozen_kind(subject, victim, before);
	stop->retired = retired_bytes();
	stress_stop_release();
	stress_end(self, 1);
	return frozen;
}

/* Stops that all must outlive, until `until`. Returns how many there were. */
static uint64_t must_go_on(struct stress_thread *self, const struct subject *subject, uint64_t until)
{
	struct stop stop;
	uint64_t stops = 0;

	start_workers(subject);
	for (; stops == 0 || weir_now_ns() < until; stops++) {
		int frozen = try_once(self, subject, &stop);

		STRESS_CHECK(frozen < 0,
		             "%s: a thread stopped in \"%s\" (stop %" PRIu64 ") stopped three others: not even %" PRIu64
		             " of \"%s\" in %" PRIu64 " s; %" PRIu64 " bytes are retired, the budget is %" PRIu64,
		             subject->name, stop.doing, stops, stress_scaled(subject->wanted), subject->kind[frozen],
		             subject->patience_ns / 1000000000u, stop.retired, weir_reclaim_budget());
	}
	stop_workers();
	return stops;
}

/* The end of this part of the scenario's time, of `parts` in all. */
static uint64_t part_end(double seconds_left, unsigned parts)
{
	return weir_deadline_in((uint64_t)(seconds_left * 1e9 / parts));
}

/* -- rings -------------------------------------------------------------------------------------------------------------------- */

enum { RING_CAPACITY = 16, MANY = 5 };

static weir_ring *ring;

static int work_on_ring(struct stress_thread *self)
{
	uint64_t values[MANY] = {1, 2, 3, 4, 5};
	size_t done = 0;

	switch (stress_below(self, 4)) {
	case 0: stress_begin(self, "try_enqueue"); return weir_ring_try_enqueue(ring, 1) == WEIR_OK ? 0 : -1;
	case 1: stress_begin(self, "try_dequeue"); return weir_ring_try_dequeue(ring, values) == WEIR_OK ? 1 : -1;
	case 2:
		stress_begin(self, "try_enqueue_many");
		return weir_ring_try_enqueue_many(ring, values, MANY, &done) == WEIR_OK ? 0 : -1;
	default:
		stress_begin(self, "try_dequeue_many");
		return weir_ring_try_dequeue_many(ring, values, MANY, &done) == WEIR_OK ? 1 : -1;
	}
}

static uint64_t stop_in_ring(struct stress_thread *self, const char *name, enum weir_ring_format format, uint64_t until)
{
	const struct subject subject = {name, {"enqueue", "dequeue"}, work_on_ring, 1000, 8000000000u};
	struct weir_ring_options options = {.struct_size = sizeof(options), .format = format};
	uint64_t stops;

	STRESS_CHECK(weir_ring_create(RING_CAPACITY, &options, &ring) == WEIR_OK, "no ring");
	stops = must_go_on(self, &subject, until);
	weir_ring_destroy(ring);
	return stops;
}

/* The control: one lock around two indexes. */
static struct {
	pthread_mutex_t lock;
	uint64_t head, tail, values[RING_CAPACITY];
} locked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int work_on_locked(struct stress_thread *self)
{
	int kind = (int)stress_below(self, 2), done;

	stress_begin(self, kind == 0 ? "locked enqueue" : "locked dequeue");
	(void)pthread_mutex_lock(&locked.lock);
	done = kind == 0 ? locked.tail - locked.head < RING_CAPACITY : locked.tail != locked.head;
	if (done && kind == 0)
		locked.values[locked.tail++ % RING_CAPACITY] = locked.head;
	else if (done)
		locked.head++;
	(void)pthread_mutex_unlock(&locked.lock);
	return done ? kind : -1;
}

static void stop_in_control(struct stress_thread *self, uint64_t until)
{
	const struct subject subject = {"mutex", {"enqueue", "dequeue"}, work_on_locked, 100, 20000000};
	struct stop stop;
	uint64_t stops = 0, frozen = 0;

	start_workers(&subject);
	for (; weir_now_ns() < until; stops++)
		frozen += try_once(self, &subject, &stop) >= 0;
	stop_workers();
	stress_note("stops of a mutex ring", stops);
	stress_note("froze it", frozen);
}

void scenario_ring_stopped(void)
{
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	if (stress_has_ltq16())
		stress_note("stops in LTQ16",
		            stop_in_ring(self, "LTQ16", WEIR_RING_FORMAT_LTQ16, part_end(stress_seconds_left(), 3)));
	stress_note("in LTQ64", stop_in_ring(self, "LTQ64", WEIR_RING_FORMAT_LTQ64, part_end(stress_seconds_left(), 2)));
	stop_in_control(self, part_end(stress_seconds_left(), 1));
}

/* -- variables ---------------------------------------------------------------------------------------------------------------- */

enum { VARIABLES = 5, MAX_WORDS = 250 };

static const uint64_t small_budget = 1 << 21;

static weir_var *variables[VARIABLES];

static weir_tensor *make_value(struct stress_thread *self)
{
	static const uint64_t zeros[MAX_WORDS];
	weir_shape shape = {1, {1 + (int64_t)stress_below(self, MAX_WORDS)}};
	weir_tensor *value = NULL;
	enum weir_status status = weir_tensor_copy_of(WEIR_I64, &shape, zeros, stress_blocks(), &value);

	STRESS_CHECK(status == WEIR_OK, "no memory for a value: 64 MiB are in use");
	return value;
}

static enum weir_status next_value(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)current, (void)error;
	*next = make_value(context);
	return WEIR_OK;
}

static void check_write(enum weir_status status, const char *call)
{
	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "%s: %s", call, weir_status_name(status));
}

static void write_one(struct stress_thread *self)
{
	weir_var *var = variables[stress_below(self, VARIABLES)];
	weir_tensor *value;

	if (stress_one_in(self, 2)) {
		stress_begin(self, "update");
		check_write(weir_var_update(var, next_value, self, WEIR_NO_DEADLINE, NULL, NULL), "weir_var_update");
		return;
	}
	stress_begin(self, "assign");
	value = make_value(self);
	check_write(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), "weir_var_assign");
	weir_tensor_release(value);
}

static int commit_some(struct stress_thread *self)
{
	size_t first = (size_t)stress_below(self, VARIABLES), count = 2 + (size_t)stress_below(self, VARIABLES - 1);
	struct weir_commit_part parts[VARIABLES];
	enum weir_status status;

	stress_begin(self, "commit");
	for (size_t i = 0; i < count; i++) {
		weir_var *var = variables[(first + i) % VARIABLES];

		parts[i] = (struct weir_commit_part){var, weir_var_version(var), make_value(self)};
	}
	status = weir_var_commit(parts, count, WEIR_NO_DEADLINE, NULL, NULL);
	check_write(status, "weir_var_commit");
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(parts[i].value);
	return status == WEIR_OK;
}

static void read_one(struct stress_thread *self)
{
	weir_read read;

	stress_begin(self, "read");
	STRESS_CHECK(weir_var_read(variables[stress_below(self, VARIABLES)], &read) == WEIR_OK, "a read failed");
	weir_read_release(&read);
}

static void read_all(struct stress_thread *self)
{
	weir_read reads[VARIABLES];

	stress_begin(self, "snapshot");
	STRESS_CHECK(weir_var_snapshot(variables, VARIABLES, reads, NULL) == WEIR_OK, "a snapshot failed");
	weir_read_release_many(reads, VARIABLES);
}

static int work_on_variables(struct stress_thread *self)
{
	/* Every second worker only reads, so that reads go on when all writers wait. */
	switch (stress_below(self, self->number % 2 ? 2 : 4)) {
	case 0: read_one(self); return 0;
	case 1: read_all(self); return 0;
	case 2: write_one(self); return 1;
	default: return commit_some(self) ? 1 : -1;
	}
}

void scenario_variable_stopped(void)
{
	const struct subject subject = {"variables", {"reads", "writes"}, work_on_variables, 300, 8000000000u};
	struct weir_var_options options = {.struct_size = sizeof(options), .dtype = WEIR_I64, .allocator = stress_blocks()};
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	weir_reclaim_set_budget(small_budget);
	for (size_t i = 0; i < VARIABLES; i++) {
		weir_tensor *value = make_value(self);

		STRESS_CHECK(weir_var_create(&options, value, &variables[i], NULL) == WEIR_OK, "no variable");
		weir_tensor_release(value);
	}
	stress_note("stops", must_go_on(self, &subject, part_end(stress_seconds_left(), 1)));
	for (size_t i = 0; i < VARIABLES; i++)
		weir_var_destroy(variables[i]);
	weir_reclaim_set_budget(0);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(8000000000u)) == WEIR_OK, "flush: something is still held");
	STRESS_CHECK(stress_blocks_bytes() == 0, "%llu bytes were not freed", stress_blocks_bytes());
}
