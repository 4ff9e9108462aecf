/*
 * crew.h - the threads of one run: started together, pinned, timed, stopped.
 */
#ifndef WEIR_BENCH_CREW_H
#define WEIR_BENCH_CREW_H

#include <stdatomic.h>
#include <stdint.h>

#include "suite.h"

struct bench_crew;

/* The work of one thread. It runs until bench_stopped() returns 1, and may then clean up. */
typedef void bench_work_fn(struct bench_crew *crew, unsigned index);

struct bench_crew {
	const struct bench_workload *workload;
	const struct bench_about *about;
	bench_work_fn *work;
	unsigned threads; /* work() runs in this many threads, with an index from 0 */
	void *context;    /* belongs to the suite */
	void *self;       /* the contender's object, for begin and end */
	bench_thread_fn *begin, *end;
	_Alignas(64) _Atomic(int) stop;
	_Alignas(64) _Atomic(uint64_t) start_ns; /* when all threads were started */
};

/*
 * Runs the crew for the workload's duration and fills the sample's window. If the threads of a
 * contender never end, the call prints the contender's name. Nothing can be measured beside such
 * threads, so the call then calls bench_give_up (may be NULL), which keeps the results so far, and
 * ends the program.
 */
void bench_crew_run(struct bench_crew *crew, struct bench_sample *sample);

extern void (*bench_give_up)(void);

static inline int bench_stopped(const struct bench_crew *crew)
{
	return atomic_load_explicit(&crew->stop, memory_order_acquire);
}

uint64_t bench_now_ns(void);
uint64_t bench_processor_ns(void); /* used by this program */
/* The number of processors that this program may use. */
unsigned bench_processors(void);

#endif
