/*
 * engine.h - the parts of the checker and their relations.
 *
 *   execute.c       one execution: threads as fibers, what they wait for, how it ends; the loop
 *                   over executions
 *   explore.c       which thread runs next, which value a load returns; what is left to try
 *   checkpoint.c    an execution as it was at a choice, from which other executions begin
 *   memory.c        locations, races, what a load may return; memory.h: what it keeps
 *   view.h          what a thread knows of the memory
 *   memory_state.c  the part of the memory that may still matter, as a number
 *   state.c         the states that executions have reached
 *   heap.c          live and freed memory; what setup left, with which each execution begins
 *   fiber.c         switching stacks
 *   entry.c         the calls that the compiler inserted
 *   system.c        what the library needs of the system: futex, membarrier, threads
 *   answers.c       what the program's calls returned, and whether an order explains it
 *   trace.c         a failing execution as a table
 *   replay.c        its choices as a text
 */
#ifndef WEIR_MODEL_ENGINE_H
#define WEIR_MODEL_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/model.h>

enum { THREADS = WEIR_MODEL_MAX_THREADS + 1 }; /* 0: setup and finish */
enum { LOCATIONS = 640, PATH = 1 << 16 };

/* numbered as by the compiler */
enum order { RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };
enum kind { OP_LOAD, OP_STORE, OP_RMW, OP_CAS, OP_FENCE, OP_HEAVY, OP_WAIT, OP_WAKE };

/* A visible operation: one whose order among the operations of other threads matters. */
struct operation {
	enum kind kind;
	enum order order, failure; /* failure: of a CAS; for a load, its order */
	void *address;             /* of the location; NULL for fences */
	uint32_t location;
};

typedef unsigned __int128 value_t;

enum thread_status { READY, BLOCKED, ENDED };

struct thread {
	enum thread_status status;
	int timed, woken; /* its sleep has a deadline; its sleep was ended by a wake */
	struct operation next;
	void *waits_for;
	uint32_t done; /* number of operations */
	/* See state.c. */
	/* the end of its stack, down to what the compiler saved when it called the checker */
	const char *stack;
	uint64_t given; /* the arguments of its call, as a number */
	uint64_t where; /* both, as a number; 0: not known yet */
	/* its last operation may be combined with its next, because no other thread could tell */
	int as_one;
	uint32_t row;    /* number of operations that were done as one */
	int unseen;      /* its last operation wrote where no other thread looks */
	uint32_t hidden; /* number of such operations in a row */
	/* its next load returns this store or a newer one: the older ones are explored elsewhere */
	uint32_t fresh;
	void (*handler)(void); /* that may still interrupt it; NULL: none */
};

/* Each module names its parts of a checkpoint. */
struct checkpoint;

/* -- execute.c -- */
extern const struct weir_model_program *model_program;
extern struct weir_model_options model_options;
extern struct thread model_threads[THREADS];
extern int model_running; /* threads of the program are under way: accesses are scheduled */
extern int model_active;  /* an execution is under way: accesses are recorded */
extern unsigned model_thread;
extern uint64_t model_steps;
/* Called before a visible operation is named: a signal handler may come first. */
void model_may_be_interrupted(void);
/* Called before a visible operation. May switch to another thread. */
void model_schedule(const struct operation *operation);
/* Sleeps; returns 1 if it was woken, 0 if a deadline passed. */
int model_block(void *address, int timed);
unsigned model_wake(void *address, unsigned count);
/* in a thread */
void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void model_note_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Called when something was learned that changes the meaning of what was explored. The search
 * begins again.
 */
void model_begin_again(void) __attribute__((noreturn));
void execute_parts(struct checkpoint *checkpoint);

/* -- explore.c -- */
void explore_begin(void);     /* a search */
void explore_execution(void); /* the next execution of it */
int explore_goes_back(void);  /* it takes the path of the previous execution, up to a choice */
/* the node of that choice, or of the last choice of a thread before it */
uint32_t explore_turn(void);
/* Returns 1 if the execution has arrived at that node, to which other executions may return. */
int explore_is_at_turn(void);
void explore_parts(struct checkpoint *checkpoint);
/*
 * Returns the thread that runs next. 0: every thread that could run is explored elsewhere.
 * `enabled` is not empty.
 */
unsigned explore_thread(unsigned enabled);
/* Returns a number from 0 to count - 1; 0 is explored first. */
uint32_t explore_value(uint32_t count);
/*
 * The current operation of this thread is a load, or a CAS that failed, and read what the operation
 * at node - 1 wrote.
 */
void explore_reads_from(uint32_t node);
/* The current operation is a CAS that succeeds, or would have succeeded at some older store. */
void explore_cas_succeeds(void);
void explore_cas_could_succeed(void);
uint32_t explore_node(void); /* the node of this thread's current operation, + 1 */
int explore_next(void);      /* returns 0 when nothing is left */
/*
 * Returns 1 if this thread's next operation is combined with its last one, without a choice between
 * them.
 */
int explore_goes_on(void);
/*
 * Called when no other thread looks at what the current operation has written. Returns 1 if that
 * operation is combined with this thread's next one, without a choice between them.
 */
int explore_goes_unseen(void);
/*
 * Called when the thread does something between two operations that is ordered with actions of
 * other threads. These two operations are then not combined.
 */
void explore_shows(void);
/*
 * With states merged, the search learns whether the program uses membarrier. The first function
 * forgets this. The second notes a membarrier, and the search begins again if it is the first one.
 * The third returns 1 if one was noted.
 */
void explore_learns_nothing(void);
void explore_meets_membarrier(void);
int explore_has_membarrier(void);
/* The path taken so far. */
char *explore_path(void);
void explore_follow(const char *path);

/* -- memory.c -- */
void memory_begin(void); /* a search */
void memory_reset(void);
uint32_t memory_location(const void *address, size_t size);
uint32_t memory_last(uint32_t location); /* number of the last store */
value_t memory_load(void *address, size_t size, enum order order);
void memory_store(void *address, size_t size, value_t value, enum order order);
/* *old is the value found; returns 1 if it was `expected` and became `desired`. */
int memory_cas(void *address, size_t size, value_t expected, value_t desired, enum order success, enum order failure,
               value_t *old);
value_t memory_update(void *address, size_t size, value_t (*update)(value_t, value_t), value_t operand,
                      enum order order);
void memory_fence(enum order order);
void memory_heavy_fence(void);
/* this thread, or Linux on its behalf, has seen the last store */
void memory_observe(uint32_t location);
void memory_plain(const void *address, size_t size, int is_write);
/* the memory is new: its past is forgotten, and this thread has written to it */
void memory_forget(const void *address, size_t size);
void memory_thread_starts(unsigned thread); /* after thread 0's setup */
void memory_all_join(void);                 /* thread 0 sees what all threads did */
/* Calls `visit` for each four bytes that were written since memory_reset(). */
void memory_each_written(void (*visit)(char *address));

uint64_t memory_state(void); /* memory_state.c */
/*
 * Returns 1 if, with states merged, this execution has shown that the states must be distinguished
 * further.
 */
int memory_has_learned(void);
void memory_forget_stale_reads(unsigned t);
void memory_parts(struct checkpoint *checkpoint);

/* -- state.c -- */
static inline uint64_t state_mix(uint64_t state, uint64_t value)
{
	state = (state * UINT64_C(0x9E3779B97F4A7C15) + UINT64_C(0xD1B54A32D192ED03)) ^ value;
	state = (state ^ state >> 32) * UINT64_C(0xBF58476D1CE4E5B9);
	state = (state ^ state >> 29) * UINT64_C(0x94D049BB133111EB);
	return state ^ state >> 32;
}
/*
 * A function that performs an operation for the program begins with STATE_ENTER() and ends with
 * state_leave(). `given`: the arguments that the operation itself does not contain. STATE_ENTER()
 * makes the compiler save all registers of the caller in the frame: at the frame's top on x86-64,
 * above the frame's address on arm64.
 */
#if defined(__x86_64__)
enum { STATE_SUPPORTED = 1, STATE_SAVED = 5 * 8 };
#elif defined(__aarch64__)
enum { STATE_SUPPORTED = 1, STATE_SAVED = 0 };
#else
enum { STATE_SUPPORTED = 0, STATE_SAVED = 0 };
#endif
#define STATE_ENTER(number) \
	do { \
		__builtin_unwind_init(); \
		state_enter((const char *)__builtin_frame_address(0) - STATE_SAVED, number); \
	} while (0)
void state_enter(const char *stack, uint64_t given);
void state_leave(void);
void state_check_entered(void);
void state_forgets(const char *address); /* what was written to */
/* The parts of a state. */
enum state_part {
	STATE_STACKS,     /* of the threads */
	STATE_OPERATIONS, /* the operations that they are about to do, with their arguments */
	STATE_SLEEP,      /* which threads sleep, and on what */
	STATE_MEMORY,     /* the values that the memory holds */
	STATE_HISTORIES,  /* older stores that may still be read */
	/* what a thread that acquires from a store will know of other stores and of accesses */
	STATE_STORES,
	STATE_STORES_CLOCKS,
	STATE_VIEWS, /* what a thread knows of stores and of accesses */
	STATE_VIEWS_CLOCKS,
	STATE_PENDING,  /* what an acquire fence would add */
	STATE_RELEASED, /* what a release fence has left */
	STATE_S,        /* what seq_cst accesses and fences must see by the order S */
	STATE_ACCESSES, /* accesses with which other threads may race */
	STATE_HEAP,
	STATE_ANSWERS, /* the answers of calls, and which threads know that the calls have ended */
	STATE_SYSTEM   /* time, and the library's thread-local variables */
};
/* The parts that are left out, as a set: check_state.c shows that each is needed. */
extern unsigned state_left_out;
static inline uint64_t state_part(enum state_part part, uint64_t value)
{
	return (state_left_out >> part & 1) == 0 ? value : 0;
}
void state_begin(void);
uint64_t state_count(void);
int state_is_new(void);

/* -- answers.c -- */
void answers_begin(void);       /* a program: before its setup */
void answers_remember(void);    /* setup has run */
void answers_reset(void);       /* an execution begins, as setup left it */
void answers_call_begins(void); /* of this thread */
void answers_call_ends(void);
void answers_judge(void); /* after finish: notes a failure if no order explains them */
void answers_print(void);
uint64_t answers_state(void); /* what was returned, and which calls have begun after which ones */
void answers_parts(struct checkpoint *checkpoint);

/* -- heap.c -- */
void heap_begin(void);    /* a search: nothing is allocated */
void heap_keep(void);     /* what is allocated so far is never freed */
void heap_remember(void); /* setup has run: executions start from here */
/* restores what setup left; if `compare` is set, finds writes that were not seen */
void heap_restore(int compare);
void heap_put_back(char *address); /* restores four bytes to what setup left */
/* how many of these four bytes are restored; 0: they do not belong to the program */
size_t heap_extent(const char *address);
void heap_parts(struct checkpoint *checkpoint);
void heap_end(void); /* everything is as before the search */
void *heap_allocate(size_t size, size_t alignment);
void heap_release(void *memory);
void heap_release_of(void *memory, size_t size, size_t alignment); /* as an allocator gets it */
/* Fails the execution if the address lies in memory that was freed. */
void heap_check(const void *address, const char *what);
void heap_check_leaks(void);
uint64_t heap_state(void);
/* Where an address lies, as text: "state+8", "block 3+16". */
const char *heap_name(const void *address, char text[static 32]);

/* -- fiber.c -- */
#if defined(__x86_64__) || defined(__aarch64__)
enum { FIBER_CAN_BE_KEPT = 1 };
#else
enum { FIBER_CAN_BE_KEPT = 0 };
#endif
const char *fiber_stack_end(unsigned thread);
int fiber_of(const char *address); /* the thread on whose stack the address lies; -1: none */
void fiber_start(unsigned thread, void (*run)(void));
/* from the engine; returns at fiber_leave() */
void fiber_enter(unsigned thread);
void fiber_switch_to(unsigned from, unsigned to);                 /* between fibers */
void fiber_leave(unsigned from);                                  /* to the engine */
void fiber_parts(struct checkpoint *checkpoint, unsigned thread); /* where FIBER_CAN_BE_KEPT */

/* -- system.c -- */
void system_begin(void); /* a search begins; the library has been used in the process before */
void system_remember(void);
void system_restore(void);
void system_switch(unsigned from, unsigned to); /* thread-local variables of the library */
void system_thread_ends(void);
/* the thread's own state; 0: the state that all threads share */
uint64_t system_state(unsigned thread);
int system_is_constant(const void *address);
void system_parts(struct checkpoint *checkpoint);
int system_is_local(const void *address);

/* -- trace.c -- */
extern int trace_on;
void trace_begin(void);
void trace_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
