/*
 * crew.h - the threads of one run: started together, pinned, timed, stopped.
 */
#ifndef WEIR_BENCH_CREW_H
#define WEIR_BENCH_CREW_H

#include <stdatomic.h>
#include <stdint.h>

#include "suite.h"

struct bench_crew;

/* One thread. It works until bench_stopped() says so, and may take its time to put things in order then. */
typedef void bench_work_fn(struct bench_crew *crew, unsigned index);

struct bench_crew {
	const struct bench_workload *workload;
	const struct bench_about *about;
	bench_work_fn *work;
	unsigned threads; /* as many run work(), with an index from 0 */
	void *context;    /* the suite's */
	void *self;       /* the contender's object, for begin and end */
	bench_thread_fn *begin, *end;
	_Alignas(64) _Atomic(int) stop;
	_Alignas(64) _Atomic(uint64_t) start_ns; /* when all were let go */
};

/*
 * Runs the crew for the workload's duration and fills the sample's window. A contender whose threads never end is named; nothing can be
 * measured beside them, so bench_give_up (may be NULL) is called to keep what there is, and the program ends.
 */
void bench_crew_run(struct bench_crew *crew, struct bench_sample *sample);

extern void (*bench_give_up)(void);

static inline int bench_stopped(const struct bench_crew *crew)
{
	return atomic_load_explicit(&crew->stop, memory_order_acquire);
}

uint64_t bench_now_ns(void);
uint64_t bench_processor_ns(void); /* of this program */
/* Processors that this program may use. */
unsigned bench_processors(void);

#endif
