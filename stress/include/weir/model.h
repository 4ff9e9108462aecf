/*
 * model.h - a model checker for lock-free C11 code: every interleaving and every value of a load.
 *
 * Use it for a scope of a few threads with a few operations each. It finds out whether any
 * execution that C11 allows breaks an assertion, has a data race, uses freed memory, leaks, or
 * leaves all threads asleep. For long runs on the real machine use weir-stress.
 *
 * The code under test is compiled unchanged, with -fsanitize=thread. This checker, instead of
 * ThreadSanitizer, answers the calls that the compiler inserts at each access. Nothing is
 * rewritten, and users can check structures of their own. Link with all of libweir-model,
 * libweir-under-test and -rdynamic (pkg-config: weir-model); gcc only.
 *
 * What is modelled. Threads are fibers, and the checker chooses at each atomic access which one
 * runs next. Each location keeps the history of its stores, and each thread has a view of it. A
 * load may return any store that coherence, release/acquire, fences and the seq_cst order allow.
 * Stores enter modification order when they are executed, and no load reads a store that has not
 * been executed yet. Behaviours that need either (2+2W with both inner stores last, load buffering)
 * are therefore not explored. Stores become visible in finite time: a thread reads the same old
 * store of a location at most eight times in a row. A weak compare-and-swap never fails spuriously.
 * membarrier(2) puts a full fence into every thread. Plain accesses are checked for races by vector
 * clocks, and must lie inside live memory. Signal handlers run where the program allows them. Time does not pass while a thread can run: a deadline
 * passes early (as a choice) or when all threads sleep.
 *
 * What is explored. There are three ways: depth first over schedules and values, with dynamic
 * partial-order reduction (source sets and sleep sets: Abdulla, Aronis, Jonsson, Sagonas, POPL
 * 2014); with a bound on preemptions, where the reduction has conservative points (Coons,
 * Musuvathi, McKinley, OOPSLA 2013); or at random, with priorities (PCT: Burckhardt et al., ASPLOS
 * 2010) from a seed.
 *
 * An execution begins where its path leaves the path of the previous one: stacks, `state` and
 * allocated memory are restored to that point. thread() therefore does not run from its start for
 * each execution. Its output is printed once for many executions (not in a replay). Across an
 * atomic access it must not hold resources of libraries that are not instrumented, such as memory
 * from malloc() or a FILE. (Programs whose threads write to variables outside of `state`, which are
 * not restored, begin at setup each time.)
 *
 * With merge_states an execution ends where it reaches a state that another execution has reached.
 * This completes scopes of few steps and many interleavings. A state is a hash of 64 bits and
 * includes the stacks of the threads (x86-64 and arm64; elsewhere the option is ignored). Livelocks
 * are then not found, because they return to an earlier state, and the reported lengths of calls do
 * not cover all executions.
 */
#ifndef WEIR_MODEL_H
#define WEIR_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_MODEL_MAX_THREADS = 7, WEIR_MODEL_CALLS = 8 };

struct weir_model_program {
	const char *name;
	size_t threads; /* 1 .. WEIR_MODEL_MAX_THREADS */
	void *state;    /* shared; each execution finds it as setup left it */
	size_t state_size;
	/* runs alone, once, before all threads; NULL: nothing */
	void (*setup)(void *state);
	void (*thread)(void *state, size_t number); /* number 0 .. threads-1 */
	/* runs alone, after all threads of an execution; NULL: nothing */
	void (*finish)(void *state);
};

struct weir_model_options {
	uint64_t max_executions; /* 0: until all are explored */
	uint64_t max_steps;      /* of one execution; more steps count as livelock; 0: 10000 */
	uint64_t random_seed;    /* 0: exhaustive; else max_executions random executions */
	unsigned random_depth;   /* of PCT: 1 + the number of priority changes; 0: 3 */
	/* exhaustive: at most (this number - 1) preemptions per execution; 0: no bound */
	unsigned preemptions;
	unsigned symmetric; /* Linux refuses membarrier, so both fences are seq_cst fences */
	/* exhaustive, unbounded: an execution ends at a state that another has reached */
	unsigned merge_states;
	/*
	 * With merge_states. Bit t is set if thread t does the same as thread t - 1, and it is
	 * irrelevant which of them is woken or acts. Of two executions in which such threads exchange
	 * roles, only the one in which thread t - 1 takes its first step first is explored.
	 */
	unsigned alike;
	/* exhaustive: every schedule, equivalent ones included; to check the reduction */
	unsigned no_reduction;
	/*
	 * Thread stop_thread - 1 stalls for ever after stop_after atomic accesses; 0: no thread does.
	 * finish() is then not run.
	 */
	unsigned stop_thread;
	uint32_t stop_after;
	/*
	 * a string that a failure printed: runs only that execution, with its trace on standard output
	 */
	const char *replay;
};

struct weir_model_result {
	uint64_t executions;
	uint64_t pruned;      /* ended early because an equivalent one was explored */
	uint64_t states;      /* reached states, with merge_states */
	uint64_t nanoseconds; /* of processor time */
	int complete;         /* everything within the bounds was explored */
	int failed;
	int stopped;                             /* in some execution the thread was stalled */
	uint32_t longest_call[WEIR_MODEL_CALLS]; /* atomic accesses; see weir_model_call_begins() */
	char message[256];
	char *replay; /* from malloc(), after a failure */
};

/* Runs a program. Not reentrant. Returns 0 if no execution failed, else 1. */
int weir_model_check(const struct weir_model_program *program, const struct weir_model_options *options,
                     struct weir_model_result *result);

/*
 * Stalls each thread for ever at each of its steps in turn, and explores what the other threads do.
 * If they all end, the code is lock-free in this scope. The result is the sum of all searches.
 */
int weir_model_check_stops(const struct weir_model_program *program, const struct weir_model_options *options,
                           struct weir_model_result *result);

/* For the program: ends the execution as failed. */
void weir_model_fail(const char *message);
#define weir_model_assert(condition) ((condition) ? (void)0 : weir_model_fail("assertion failed: " #condition))

/* For the program: memory whose use after free, double free and leak is reported. */
void *weir_model_allocate(size_t size, size_t alignment);
void weir_model_release(void *memory);

/*
 * For the program: from here on, a signal handler may interrupt this thread once, before any of its atomic accesses and
 * fences (not inside a wait on a futex). It is a choice whether it does, and where. NULL: none may any more. What the
 * handler does comes after what the thread did before, and before the rest, as the processor sees it: nothing is
 * reordered by the compiler. It does not come before the thread's first atomic access.
 */
void weir_model_interrupt(void (*handler)(void));

/*
 * For the program: brackets a call. The largest number of atomic accesses of the call is reported.
 * call < WEIR_MODEL_CALLS.
 */
void weir_model_call_begins(unsigned call);
void weir_model_call_ends(unsigned call);

/*
 * For the program: judges the results of its calls at the end of each execution. The execution
 * fails unless one sequential order of the calls explains these results. In that order the calls of
 * each thread keep their order, and a call comes before another if its end happens before the
 * other's begin. Calls of setup and finish are judged, too.
 *
 * weir_model_judge(), called in setup, describes the structure: a model of history/history.h, as
 * for weir-stress, and its context, which must not change. weir_model_answer(), called after
 * weir_model_call_ends() and before the thread's next call, records what the call was and what it
 * returned: kind, argument and result of a struct history_op. For a call that is several operations
 * (a batch) it records each of them, in order. weir_model_answer_parts() also records up to three
 * parts. An execution has at most 64 answers.
 */
struct history_model;
struct history_part;
void weir_model_judge(const struct history_model *model, const void *context);
void weir_model_answer(unsigned kind, uint64_t argument, uint64_t result);
void weir_model_answer_parts(unsigned kind, uint64_t argument, uint64_t result, const struct history_part *parts,
                             size_t count);

#ifdef __cplusplus
}
#endif

#endif
