/*
 * model.h - a model checker for lock-free C11 code: every interleaving, and every value that a load may return.
 *
 * Use it for a scope of a few threads with a few operations each, to learn whether any execution that C11 allows breaks an assertion,
 * races, uses freed memory, leaks, or leaves all threads asleep. For long runs on the real machine use weir-stress.
 *
 * The code under test is compiled as it is, with -fsanitize=thread: the calls that the compiler inserts at each access are answered by
 * this checker instead of by ThreadSanitizer. So nothing is rewritten, and users can check structures of their own. Link with
 * all of libweir-model, libweir-under-test and -rdynamic (pkg-config: weir-model); gcc only.
 *
 * What is modelled. Threads are fibers, scheduled at each atomic access. Each location keeps the history of its stores, each thread a
 * view of it: a load may return any store that coherence, release/acquire, fences and the seq_cst order allow. Stores take their
 * place in modification order as they are executed, and no load reads a store that has not been executed yet: behaviours that
 * need either (2+2W with both inner stores last, load buffering) are not explored. Stores become visible in finite time: a thread reads
 * the same old store of a location at most eight times in a row. A compare-and-swap that may fail spuriously
 * does not. membarrier(2) puts a full fence into every thread. Plain accesses are checked for races by vector clocks, and for
 * lying in live memory. Time does not pass while a thread can run: a deadline passes early (as a choice) or when all sleep.
 *
 * What is explored. Depth first over schedules and values, with dynamic partial-order reduction (source sets and sleep sets: Abdulla,
 * Aronis, Jonsson, Sagonas, POPL 2014); with a bound on preemptions, reduction with conservative points (Coons, Musuvathi,
 * McKinley, OOPSLA 2013); or at random, with priorities (PCT: Burckhardt et al., ASPLOS 2010) from a seed.
 * An execution begins where its path leaves that of the one before: stacks, `state` and allocated memory are put back as they were there.
 * So thread() does not run anew from its start for each: what it prints is printed once for many (not in a replay), and what it has from
 * libraries that are not instrumented, as memory from malloc, or a FILE, it must not hold over an atomic access. (Programs whose threads
 * write to variables outside of `state`, which nothing puts back, begin at setup each time.)
 * With merge_states an execution ends where it comes to a state that another has been in; scopes of few steps and many interleavings
 * come to an end that way. A state is a hash of 64 bits, and takes in the threads' stacks (x86-64 and arm64; elsewhere the option is
 * ignored). A livelock is not found then: it comes back to where it was. Nor are lengths of calls those of all executions.
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
	void (*setup)(void *state);                 /* alone, once, before all; NULL: nothing */
	void (*thread)(void *state, size_t number); /* number 0 .. threads-1 */
	void (*finish)(void *state);                /* alone, after all threads of an execution have ended; NULL: nothing */
};

struct weir_model_options {
	uint64_t max_executions; /* 0: until all are explored */
	uint64_t max_steps;      /* of one execution, beyond which it counts as livelock; 0: 10000 */
	uint64_t random_seed;    /* 0: exhaustive; else max_executions random ones */
	unsigned random_depth;   /* of PCT: 1 + the places at which a priority changes; 0: 3 */
	unsigned preemptions;    /* exhaustive: executions with at most this many - 1; 0: no bound */
	unsigned symmetric;      /* the kernel refuses membarrier: light and heavy fences are both seq_cst fences */
	unsigned merge_states;   /* exhaustive, without such a bound: an execution ends where another has been */
	/*
	 * With merge_states. Bit t: thread t does what thread t - 1 does, and it is all the same which of them is woken or does what. Of two
	 * executions in which such threads change parts one is explored: that in which t - 1 takes its first step first.
	 */
	unsigned alike;
	unsigned no_reduction; /* exhaustive: every schedule, also equivalent ones; to check the reduction */
	/* Thread stop_thread - 1 is stopped for good after stop_after atomic accesses; 0: none. finish() is then not run. */
	unsigned stop_thread;
	uint32_t stop_after;
	const char *replay; /* a string that a failure printed: that execution only, with its trace on stdout */
};

struct weir_model_result {
	uint64_t executions;
	uint64_t pruned;      /* given up because an equivalent one was explored */
	uint64_t states;      /* met, with merge_states */
	uint64_t nanoseconds; /* of processor time */
	int complete;         /* everything within the bounds was explored */
	int failed;
	int stopped;                             /* some execution had the thread stopped */
	uint32_t longest_call[WEIR_MODEL_CALLS]; /* atomic accesses; see weir_model_call_begins() */
	char message[256];
	char *replay; /* malloc'ed, when failed */
};

/* Runs it. Not reentrant. Returns 0 when no execution failed, else 1. */
int weir_model_check(const struct weir_model_program *program, const struct weir_model_options *options,
                     struct weir_model_result *result);

/*
 * Stops each thread at each of its steps in turn, for good, and explores what the others do: that they end is what
 * lock-freedom asks. The result sums up.
 */
int weir_model_check_stops(const struct weir_model_program *program, const struct weir_model_options *options,
                           struct weir_model_result *result);

/* For the program: ends the execution as failed. */
void weir_model_fail(const char *message);
#define weir_model_assert(condition) ((condition) ? (void)0 : weir_model_fail("assertion failed: " #condition))

/* For the program: memory whose use after free, double free and leak is reported. */
void *weir_model_allocate(size_t size, size_t alignment);
void weir_model_release(void *memory);

/* For the program: brackets a call, whose longest run in atomic accesses is reported. call < WEIR_MODEL_CALLS. */
void weir_model_call_begins(unsigned call);
void weir_model_call_ends(unsigned call);

/*
 * For the program: what its calls answer is judged at the end of each execution. It fails unless there is an order of the calls that one
 * thread could have made with these answers, in which each thread's calls stay in their order, and a call comes before another if its end
 * happens before the other's begin. What setup and finish call is judged, too.
 *
 * weir_model_judge(), in setup, says what the structure is: a model of history/history.h, as for weir-stress, and its context, which is
 * not to change. weir_model_answer(), behind weir_model_call_ends() and before the thread's next call, notes what the call was and what
 * it answered: kind, argument and result of a struct history_op. Of a call that is several operations (a batch) it notes each, in order.
 * The other one notes parts, too, at most three. An execution has at most 64 answers.
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
