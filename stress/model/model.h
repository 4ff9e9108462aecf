/*
 * model.h - a model checker for lock-free C11 code: every interleaving, and every value that a load may return.
 *
 * Use it for a scope of a few threads with a few operations each, to learn whether any execution that C11 allows breaks an assertion,
 * races, uses freed memory, leaks, or leaves all threads asleep. For long runs on the real machine use weir-stress.
 *
 * The code under test is compiled as it is, with -fsanitize=thread: the calls that the compiler inserts at each access are answered by
 * this checker instead of by ThreadSanitizer. So nothing is rewritten, and users can check structures of their own.
 *
 * What is modelled. Threads are fibers, scheduled at each atomic access. Each location keeps the history of its stores, each thread a
 * view of it: a load may return any store that coherence, release/acquire, fences and the seq_cst order allow. Stores take their
 * place in modification order as they are executed, and no load reads a store that has not been executed yet: behaviours that
 * need either (2+2W with both inner stores last, load buffering) are not explored. membarrier(2) puts a full fence into every
 * thread. Plain accesses are checked for races by vector clocks, and for lying in live memory.
 *
 * What is explored. Depth first over schedules and values, with dynamic partial-order reduction (Flanagan, Godefroid, POPL 2005)
 * and sleep sets; or at random, with priorities (PCT: Burckhardt et al., ASPLOS 2010) from a seed.
 */
#ifndef WEIR_MODEL_H
#define WEIR_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum { WEIR_MODEL_MAX_THREADS = 7 };

struct weir_model_program {
	const char *name;
	size_t threads; /* 1 .. WEIR_MODEL_MAX_THREADS */
	void *state;    /* shared; put back to its first contents before each execution */
	size_t state_size;
	void (*setup)(void *state);                 /* alone, before the threads; NULL: nothing */
	void (*thread)(void *state, size_t number); /* number 0 .. threads-1 */
	void (*finish)(void *state);                /* alone, after all have ended; NULL: nothing */
};

struct weir_model_options {
	uint64_t max_executions; /* 0: until all are explored */
	uint64_t max_steps;      /* of one execution, beyond which it counts as livelock; 0: 10000 */
	uint64_t random_seed;    /* 0: exhaustive; else this many random executions are tried: max_executions */
	unsigned preemptions;    /* exhaustive: at most this many; 0: no bound */
	const char *replay;      /* a string that a failure printed: that execution only, with its trace on stdout */
};

struct weir_model_result {
	uint64_t executions;
	uint64_t pruned; /* given up because an equivalent one was explored */
	int complete;    /* everything within the bounds was explored */
	int failed;
	char message[256];
	char *replay; /* malloc'ed, when failed */
};

/* Runs it. Not reentrant. Returns 0 when no execution failed, else 1. */
int weir_model_check(const struct weir_model_program *program, const struct weir_model_options *options,
                     struct weir_model_result *result);

/* For the program: ends the execution as failed. */
void weir_model_fail(const char *message);
#define weir_model_assert(condition) ((condition) ? (void)0 : weir_model_fail("assertion failed: " #condition))

/* For the program: memory whose use after free, double free and leak is reported. */
void *weir_model_allocate(size_t size, size_t alignment);
void weir_model_release(void *memory);

#endif
