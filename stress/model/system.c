/*
 * system.c - what the library needs from the system, provided for fibers: memory, time, membarrier,
 * futex, thread-local data.
 *
 * These functions replace lib/weir/base/{assert,asymmetric,futex,memory,time}.c, which are left out
 * of the library under test. They also replace the pthread calls of lib/weir/reclaim/record.c,
 * which are renamed when that file is compiled. threads.c replaces lib/weir/base/thread.c.
 */
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/alloc.h>
#include <weir/time.h>

#include "base/futex.h"
#include "model/checkpoint.h"
#include "model/engine.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* -- the asymmetric fence: membarrier, with an empty light side; or refused by the system -- */

_Atomic(int) weiri_fence_asymmetric = 1;

bool weiri_fence_heavy(void)
{
	STATE_ENTER(9);
	if (model_running && model_options.symmetric)
		memory_fence(SEQ_CST);
	else if (model_running)
		memory_heavy_fence();
	state_leave();
	return true;
}

uint64_t weiri_fence_membarriers(void)
{
	return 0;
}

void weiri_fence_setup(void)
{
}
void weiri_fence_after_fork(void)
{
}

/* The value is constant here, so reading it is not a step. */
int system_is_constant(const void *address)
{
	return address == (const void *)&weiri_fence_asymmetric;
}

/* -- a broken invariant ends the execution, not the process -- */

void weiri_assert_failed(const char *invariant, const char *condition, const char *file, int line)
{
	model_fail("%s:%d: invariant %s broken: %s", file, line, invariant, condition);
}

/* -- what libc writes for the library ---------------------------------------------------------- */

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	memory_plain(from, size, 0);
	memory_plain(to, size, 1);
	return memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
	memory_plain(from, size, 0);
	memory_plain(to, size, 1);
	return memmove(to, from, size);
}

void *__wrap_memset(void *to, int value, size_t size)
{
	memory_plain(to, size, 1);
	return memset(to, value, size);
}

int __wrap_memcmp(const void *a, const void *b, size_t size)
{
	memory_plain(a, size, 0);
	memory_plain(b, size, 0);
	return memcmp(a, b, size);
}

int __wrap_vsnprintf(char *to, size_t size, const char *format, va_list arguments)
{
	int length = vsnprintf(to, size, format, arguments);

	if (size != 0 && length >= 0)
		memory_plain(to, (size_t)length < size ? (size_t)length + 1 : size, 1);
	return length;
}

int __wrap_snprintf(char *to, size_t size, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = __wrap_vsnprintf(to, size, format, arguments);
	va_end(arguments);
	return length;
}

/* -- memory ------------------------------------------------------------------------------------ */

void *weiri_default_allocate(void *context, size_t size, size_t alignment);
void weiri_default_release(void *context, void *memory, size_t size, size_t alignment);

void *weiri_default_allocate(void *context, size_t size, size_t alignment)
{
	(void)context;
	return heap_allocate(size, alignment);
}

void weiri_default_release(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context;
	heap_release_of(memory, size, alignment);
}

static const weir_allocator model_allocator = {weiri_default_allocate, weiri_default_release, NULL};

const weir_allocator *weir_default_allocator(void)
{
	return &model_allocator;
}

weir_allocator weiri_allocator_or_default(const weir_allocator *allocator)
{
	return allocator != NULL ? *allocator : model_allocator;
}

void *weiri_allocate(const weir_allocator *allocator, size_t size, size_t alignment)
{
	const weir_allocator of = weiri_allocator_or_default(allocator);

	return size != 0 ? of.allocate(of.context, size, alignment) : NULL;
}

void *weiri_allocate_zeroed(const weir_allocator *allocator, size_t size, size_t alignment)
{
	void *memory = weiri_allocate(allocator, size, alignment);

	if (memory != NULL) {
		memory_plain(memory, size, 1);
		memset(memory, 0, size);
	}
	return memory;
}

void weiri_release(const weir_allocator *allocator, void *memory, size_t size, size_t alignment)
{
	const weir_allocator of = weiri_allocator_or_default(allocator);

	if (memory != NULL)
		of.release(of.context, memory, size, alignment);
}

/* -- time passes only in a wait whose deadline passes ------------------------------------------ */

static uint64_t clock_ns;

uint64_t weir_now_ns(void)
{
	explore_shows();
	return clock_ns;
}

uint64_t weir_deadline_in(uint64_t nanoseconds)
{
	explore_shows();
	return nanoseconds < WEIR_NO_DEADLINE - clock_ns ? clock_ns + nanoseconds : WEIR_NO_DEADLINE;
}

static int pass_deadline(uint64_t deadline_ns)
{
	clock_ns = deadline_ns > clock_ns ? deadline_ns : clock_ns;
	return 0;
}

/* -- futex ------------------------------------------------------------------------------------- */

/* `early`: the deadline may pass before other threads do a step. */
static int wait_on(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns, bool early)
{
	void *address = (void *)(uintptr_t)word;
	char text[32];
	uint32_t location;

	/*
	 * Linux reads the word and puts the thread to sleep in one step, so the wait is one operation.
	 */
	location = memory_location(address, sizeof(*word));
	model_schedule(&(struct operation){OP_WAIT, SEQ_CST, SEQ_CST, address, location});
	heap_check(address, "a wait on a futex");
	memory_observe(memory_location(address, sizeof(*word)));
	if (*(uint32_t *)address != expected)
		return 1;
	/* Otherwise it can only pass when all threads sleep. */
	if (early && deadline_ns != WEIR_NO_DEADLINE && explore_value(2) == 1)
		return pass_deadline(deadline_ns);
	if (trace_on)
		trace_step("sleep on %s", heap_name(address, text));
	return model_block(address, deadline_ns != WEIR_NO_DEADLINE) ? 1 : pass_deadline(deadline_ns);
}

/* No signal ends a wait in the model. */
static enum weiri_futex_end wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns, bool early)
{
	bool in_time;

	STATE_ENTER(state_mix(expected, deadline_ns));
	in_time = wait_on(word, expected, deadline_ns, early);
	state_leave();
	return in_time ? WEIRI_FUTEX_AWAKE : WEIRI_FUTEX_LATE;
}

enum weiri_futex_end weiri_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	return wait_until(word, expected, deadline_ns, true);
}

/*
 * The word may have been freed before. This is allowed, because Linux uses the address only as a
 * name.
 */
void weiri_futex_wake(_Atomic(uint32_t) *word, int count)
{
	void *address = (void *)(uintptr_t)word;
	char text[32];
	unsigned woken;

	STATE_ENTER((uint64_t)count);
	model_schedule(&(struct operation){OP_WAKE, SEQ_CST, SEQ_CST, address, memory_location(address, sizeof(*word))});
	woken = model_wake(address, (unsigned)count);
	if (trace_on)
		trace_step("wake %u on %s", woken, heap_name(address, text));
	state_leave();
}

/*
 * Its deadlines pass only when all threads sleep. A sleeper in shared memory looks again and again, and
 * if each look could come at once, no execution would be the longest. Time then shows, too, that a
 * sleeper was not woken.
 */
enum weiri_futex_end weiri_futex_wait_shared(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	return wait_until(word, expected, deadline_ns, false);
}

void weiri_futex_wake_shared(_Atomic(uint32_t) *word, int count)
{
	weiri_futex_wake(word, count);
}

/* -- processes: none is gone, unless a program says so (check_shm.c) --------------------------- */

__attribute__((weak)) bool weiri_seats_is_gone(uint64_t identity)
{
	(void)identity;
	return false;
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { LOCAL_ROOM = 256 };

static void (*key_destructor)(void *);
static void *key_value[THREADS], *first_key_value;
static int once_done;

/*
 * The library's thread-local variables are one block, whose content is exchanged when the checker
 * switches fibers.
 */
static char *local;
static size_t local_size;
static char untouched[LOCAL_ROOM], first_local[LOCAL_ROOM], local_of[THREADS][LOCAL_ROOM];

int weir_model_pthread_once(pthread_once_t *once, void (*run)(void))
{
	(void)once;
	if (!once_done) {
		once_done = 1;
		run();
	}
	return 0;
}

int weir_model_pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	*key = 0;
	key_destructor = destructor;
	return 0;
}

int weir_model_pthread_setspecific(pthread_key_t key, const void *value)
{
	(void)key;
	key_value[model_thread] = (void *)(uintptr_t)value;
	return 0;
}

int weir_model_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	(void)prepare, (void)parent, (void)child;
	return 0;
}

static int find_local(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size, (void)context;
	for (int i = 0; strstr(info->dlpi_name, "weir-under-test") != NULL && i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_tls_data == NULL)
			continue;
		local = info->dlpi_tls_data;
		local_size = info->dlpi_phdr[i].p_memsz;
		if (local_size > LOCAL_ROOM)
			abort();
		memcpy(untouched, local, local_size);
	}
	return 0;
}

int system_is_local(const void *address)
{
	return (size_t)((const char *)address - local) < local_size;
}

extern void *weiri_record_register(void);

void system_begin(void)
{
	if (local == NULL)
		(void)dl_iterate_phdr(find_local, NULL);
	memset(key_value, 0, sizeof(key_value));
	memcpy(local, untouched, local_size);
	key_destructor = NULL;
	once_done = 0;
	clock_ns = 1;
	*(int *)(void *)&weiri_fence_asymmetric = !model_options.symmetric;
	(void)weiri_record_register();
}

void system_remember(void)
{
	first_key_value = key_value[0];
	memcpy(first_local, local, local_size);
}

void system_restore(void)
{
	clock_ns = 1;
	memset(key_value, 0, sizeof(key_value));
	key_value[0] = first_key_value;
	for (unsigned t = 1; t <= model_program->threads; t++)
		memcpy(local_of[t], untouched, local_size);
	memcpy(local, first_local, local_size);
	model_thread = 0;
}

void system_switch(unsigned from, unsigned to)
{
	memcpy(local_of[from], local, local_size);
	memcpy(local, local_of[to], local_size);
}

void system_parts(struct checkpoint *checkpoint)
{
	checkpoint_part(checkpoint, &clock_ns, sizeof(clock_ns));
	checkpoint_part(checkpoint, key_value, sizeof(key_value));
	checkpoint_part(checkpoint, local, local_size);
	for (unsigned t = 0; t <= model_program->threads; t++)
		checkpoint_part(checkpoint, local_of[t], local_size);
}

uint64_t system_state(unsigned thread)
{
	const char *variables = thread == model_thread ? local : local_of[thread];
	uint64_t state = state_mix(8, thread == 0 ? clock_ns : (uintptr_t)key_value[thread]);

	for (size_t at = 0; thread != 0 && at < local_size; at++)
		state = variables[at] != untouched[at] ? state_mix(state, at << 8 | (unsigned char)variables[at]) : state;
	return state;
}

void system_thread_ends(void)
{
	void *value = key_value[model_thread];

	key_value[model_thread] = NULL;
	if (value != NULL && key_destructor != NULL)
		key_destructor(value);
}
