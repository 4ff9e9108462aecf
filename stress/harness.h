/*
 * harness.h - the basis of every stress scenario: seeded threads, a time limit, a watchdog, one
 * report.
 *
 * A scenario starts threads that work on one structure until stress_goes_on() returns 0. It checks
 * what a reader of the structure's header may rely on. It takes all its randomness from its
 * threads' streams, so a seed reproduces the streams (but not the schedule). The first violation
 * ends the process, because no later result could be trusted.
 *
 * One scenario runs at a time. The harness keeps its state in one place.
 */
#ifndef STRESS_HARNESS_H
#define STRESS_HARNESS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define STRESS_SANITIZER "thread"
enum { STRESS_TSAN = 1, STRESS_ASAN = 0, STRESS_SLOWDOWN = 10 };
#elif defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define STRESS_SANITIZER "address"
enum { STRESS_TSAN = 0, STRESS_ASAN = 1, STRESS_SLOWDOWN = 4 };
#else
#define STRESS_SANITIZER "none"
enum { STRESS_TSAN = 0, STRESS_ASAN = 0, STRESS_SLOWDOWN = 1 };
#endif

/* A crash ends the process by its signal. */
enum stress_exit { STRESS_FINE = 0, STRESS_WRONG = 1, STRESS_HANG = 2, STRESS_USAGE = 3, STRESS_SANITIZER_SAYS = 66 };

struct stress_scenario {
	const char *name;
	/* what must hold, in one line; NULL: it fails on purpose, and runs only if it is named */
	const char *checks;
	void (*run)(void);
};

struct stress_options {
	double seconds;      /* per scenario */
	double hang_seconds; /* the longest time without a completion */
	double live_seconds; /* between live lines; 0: none */
	unsigned threads;    /* the number of threads that a scenario may use */
	uint64_t seed;
	const char *json; /* NULL: none */
};

/* -- for scenarios ----------------------------------------------------------------------------- */

/*
 * An object that threads wait on, for the watchdog's report of which thread waits for which. The
 * object and its structure must exist as long as a thread names it. What it can give is a set of
 * bits. A thread waits for some of them, and other threads declare which they can give
 * (stress_gives).
 */
struct stress_object {
	const char *kind, *name;
	/* by bit: "an item", "room" */
	const char *gives[4];
	/* writes the state now, without waiting; NULL: none */
	void (*describe)(const void *structure, char *text, size_t size);
	const void *structure;
};

struct stress_thread;
typedef void stress_body(struct stress_thread *self, void *context);

enum { STRESS_GIFTS = 4 };

/* What a thread can give to the threads that wait on an object. */
struct stress_gift {
	_Atomic(const struct stress_object *) object;
	_Atomic(uint32_t) bits;
};

struct stress_thread {
	/* Constant. */
	const char *role;
	unsigned number; /* in the order of starting; the scenario's own thread is 0 */
	stress_body *body;
	void *context;
	pthread_t thread;
	int ended; /* under the harness's lock: no signal may be sent any longer */
	/* Written and read by the owner. */
	uint64_t random;
	/* The owner writes, the watchdog reads. */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) operations;
	_Atomic(uint64_t) begun; /* operations that it has begun */
	_Atomic(const char *) doing;
	/* the object that the thread may wait on now, and for which of its bits */
	_Atomic(const struct stress_object *) on;
	_Atomic(uint32_t) needs;
	_Atomic(int32_t) kernel_id;
	struct stress_gift gift[STRESS_GIFTS];
	/* Used by the watchdog: what it saw last, and when that last changed. */
	WEIRI_ALIGNED_APART uint64_t seen_operations;
	uint64_t seen_begun, begun_ns, completed_ns;
};

/* The running scenario, and the thread that runs it. */
const struct stress_scenario *stress_scenario(void);
struct stress_thread *stress_self(void);

/* The number of threads to start: the requested number, but at least `least`. */
unsigned stress_threads(unsigned least);
/* n, or a share of it under a sanitizer; at least 1. */
uint64_t stress_scaled(uint64_t n);
/* 1 until the scenario's time is up. */
int stress_goes_on(void);
double stress_seconds_left(void);

/* Starts a thread; the next stress_join() joins it with all others, stress_join_one() it alone. */
struct stress_thread *stress_start(const char *role, stress_body *body, void *context);
void stress_join(void);
void stress_join_one(struct stress_thread *thread);

/*
 * From here to the end of the scenario, signals interrupt its threads at random instructions and
 * hold each thread for a moment. Other threads then overtake it at points where it would rarely be
 * preempted.
 */
void stress_disturb(void);

/* Return 64 random bits of the thread's stream, or a number below n > 0. */
uint64_t stress_random(struct stress_thread *self);
uint64_t stress_below(struct stress_thread *self, uint64_t n);
/* Returns 1 once in n times. */
static inline int stress_one_in(struct stress_thread *self, uint64_t n)
{
	return stress_below(self, n) == 0;
}
/* Mixes a number; used for payloads and streams. */
uint64_t stress_mix(uint64_t value);

/* Tell the watchdog what the thread is about to do, and that `count` operations completed. */
static inline void stress_begin_on(struct stress_thread *self, const char *what, const struct stress_object *object,
                                   uint32_t needs)
{
	/* [relaxed] static data, for a report. */
	weiri_store_relaxed(&self->doing, what);
	weiri_store_relaxed(&self->on, object);
	weiri_store_relaxed(&self->needs, needs);
	weiri_store_relaxed(&self->begun, weiri_load_relaxed(&self->begun) + 1);
}
static inline void stress_begin(struct stress_thread *self, const char *what)
{
	stress_begin_on(self, what, NULL, 0);
}
static inline void stress_end(struct stress_thread *self, uint64_t count)
{
	/* [relaxed] a count that only this thread writes. */
	weiri_store_relaxed(&self->operations, weiri_load_relaxed(&self->operations) + count);
}
/*
 * Declares that from now on this thread can give these bits to threads that wait on the object. No
 * bits: it no longer can.
 */
void stress_gives(struct stress_thread *self, const struct stress_object *object, uint32_t bits);
/* Operations of all threads since the scenario began, ended threads included. */
uint64_t stress_operations(void);

/* The resident memory of the process; 0: unknown. */
uint64_t stress_resident_bytes(void);

/*
 * For a thread that has nothing to do now: the first calls pause, later ones yield the processor.
 * Reset *spins to 0 after a success.
 */
void stress_back_off(unsigned *spins);
/* Lets this time pass, in order to shift the moment at which something happens. */
void stress_let_pass(uint64_t nanoseconds);

/*
 * Reports that a check failed: prints the scenario, the seed, the violation and one command that
 * repeats the run, and ends the process. May be called from any thread.
 */
_Noreturn void stress_fail(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
#define STRESS_CHECK(condition, ...) ((condition) ? (void)0 : stress_fail(__VA_ARGS__))

/* Adds a figure to the report. Only for the scenario's own thread. */
void stress_note(const char *name, uint64_t value);
/*
 * Records that a thread was stopped in an operation on a structure, and that `froze` other threads
 * stood still meanwhile. Only for the scenario's own thread.
 */
void stress_count_stop(const char *structure, const char *operation, unsigned froze);
/* Declares that the scenario cannot run here, for the given reason. It counts as passed. */
void stress_skip(const char *why);

/* -- for main.c -------------------------------------------------------------------------------- */

void stress_run(const struct stress_scenario *scenario, const struct stress_options *options);
/* Writes the JSON file if one was requested. Returns 0 when that failed. */
int stress_finish(const struct stress_options *options);

#endif
