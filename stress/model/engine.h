/*
 * engine.h - the parts of the checker and how they look at each other.
 *
 *   explore.c  which thread runs next, which value a load returns; what is left to try
 *   memory.c   locations, views, races
 *   heap.c     live and freed memory; what is put back before each execution
 *   fiber.c    switching stacks
 *   entry.c    the calls that the compiler inserted
 *   system.c   what the library asks of the system: futex, membarrier, threads
 *   trace.c    a failing execution as a table
 */
#ifndef WEIR_MODEL_ENGINE_H
#define WEIR_MODEL_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

enum { THREADS = WEIR_MODEL_MAX_THREADS + 1 }; /* 0: setup and finish */

enum order { RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST }; /* as the compiler numbers them */
enum kind { OP_LOAD, OP_STORE, OP_RMW, OP_FENCE, OP_HEAVY, OP_WAIT, OP_WAKE };

struct operation {
	enum kind kind;
	enum order order;
	void *address; /* NULL for fences */
	uint32_t location;
};

typedef unsigned __int128 value_t;

/* -- explore.c -- */
extern int model_running; /* threads of the program are under way: accesses are scheduled */
extern int model_active;  /* an execution is under way: accesses are looked at */
extern unsigned model_thread;
/* Before a visible operation: may switch to other threads. */
void model_schedule(const struct operation *operation);
/* 0 .. count-1; 0 is what happens first. */
uint32_t model_choose(uint32_t count);
/* Sleeps until woken; whoever wakes it says why. */
void model_block(void *address);
unsigned model_wake(void *address, unsigned count);
void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
uint64_t model_step(void);

/* -- memory.c -- */
void memory_reset(void);
uint32_t memory_location(const void *address, size_t size);
value_t memory_load(void *address, size_t size, enum order order);
void memory_store(void *address, size_t size, value_t value, enum order order);
/* *old is what was there; returns 1 when it was `expected` and became `desired`. */
int memory_cas(void *address, size_t size, value_t expected, value_t desired, enum order success, enum order failure,
               value_t *old);
value_t memory_update(void *address, size_t size, value_t (*update)(value_t, value_t), value_t operand,
                      enum order order);
void memory_fence(enum order order);
void memory_heavy_fence(void);
void memory_plain(const void *address, size_t size, int is_write);
/* memory that is new, or gone: its past is forgotten */
void memory_forget(const void *address, size_t size);
void memory_thread_starts(unsigned thread); /* after thread 0's setup */
void memory_all_join(void);                 /* thread 0 sees what all did */

/* -- heap.c -- */
void heap_reset(void);
void *heap_allocate(size_t size, size_t alignment);
void heap_release(void *memory);
/* Fails the execution when the address lies in memory that was freed. */
void heap_check(const void *address, const char *what);
void heap_check_leaks(void);
void heap_remember_globals(void); /* once: the library's data segments */
void heap_restore_globals(void);

/* -- fiber.c -- */
void fiber_start(unsigned thread, void (*run)(void));
void fiber_resume(unsigned thread); /* from the engine; returns when the fiber suspends or ends */
void fiber_suspend(void);           /* to the engine */

/* -- system.c -- */
void system_reset(void);
void system_switch(unsigned from, unsigned to); /* thread-local variables of the library */
void system_thread_ends(void);

/* -- trace.c -- */
extern int trace_on;
void trace_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
