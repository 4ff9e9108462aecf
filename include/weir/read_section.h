/*
 * read_section.h - many reads of variables without handles: a read is a few loads, and what it
 * shows is valid until the section ends.
 *
 * Use it where a thread reads many variables, or one variable many times, and needs the values for a
 * short time: a request that looks at ten settings, a loop over the rows of an index. Do not keep
 * values beyond the section: take a handle (weir/var.h), or retain the tensor. For one variable that
 * a thread reads for a long time use weir/var_cache.h. Peeks of one section are not of one instant:
 * for that use weir_read_section_snapshot(), or weir_var_snapshot() for handles. A thread that begins
 * sections again and again should keep the object: from its second begin on, begin and end need no call.
 *
 *     weir_read_section section = {WEIR_READ_SECTION_INIT};
 *
 *     if (weir_read_section_begin(&section) == WEIR_OK) {
 *         const weir_read *one = weir_read_section_peek(&section, limits);
 *         const weir_read *two = weir_read_section_peek(&section, routes);
 *
 *         ...
 *         (void)weir_read_section_end(&section);
 *     }
 *
 * | call                    | threads | progress  | blocks on | allocates | signal-safe |
 * |-------------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_read_section_begin, _begin_by_call | one | wait-free | nothing | no | yes (1) |
 * | weir_read_section_peek, _find | one | wait-free | nothing | no        | yes (1)     |
 * | weir_read_section_snapshot | one  | lock-free | nothing   | no        | yes (1, 2)  |
 * | weir_read_section_end, _end_by_call | one | wait-free | nothing | no | yes (1) |
 *
 * (1) A thread's first call of Weir, whichever it is, allocates its record. A signal handler may
 *     call these only on a thread that has a record (see weir_reclaim_prepare_thread()) and whose
 *     thread-specific data is not being destroyed yet.
 * (2) With `error` NULL.
 * (3) Mostly: no era has begun since the section's last read, or its begin; no write of the variables is
 *     under way, or was the last one and aborted; and for a snapshot none of them was written since one by
 *     any thread, nor did one of this thread's last 16 snapshots start again. (The first snapshot after a
 *     write starts again, and the 16 after it take 2 more.)
 *
 * Bounds, on a thread that has a record. The unit is one atomic access or fence; r is that of
 * weir/var.h.
 *
 * | call                    | at most                                            |
 * |-------------------------|----------------------------------------------------|
 * | weir_read_section_begin | 16                                                 |
 * | weir_read_section_peek  | 13 + 4r; mostly 4 (3)                              |
 * | weir_read_section_find  | 9 + 4r                                             |
 * | weir_read_section_snapshot of k | 20 + 11k with no collection or write under way, mostly 3 + 3k (3); else no bound |
 * | weir_read_section_end   | 7; 23 to wake a writer                             |
 *
 * Memory. An open section pins the versions that existed when it began, and those that were created
 * before its last read. A thread that is stopped in a section pins only what existed when it
 * stopped, and what was created before the next collection began. A thread that keeps a section open
 * and goes on reading, or makes other calls in it, pins all that it could have read. This counts in
 * the budget (weir/reclaim.h): in the end writers wait, and are refused at their deadlines. So keep
 * sections short. weir/stall.h reports a section that lasts. Its end wakes writers that wait for
 * memory.
 *
 * Nesting. A thread may open several sections at one time, at most 2^32 - 1; they end in the reverse
 * order of their beginning. A signal handler may open one whatever it interrupted, and ends it
 * before it returns. A function that Weir calls (of an update, an allocator, a completion) ends what
 * it opened, and does not end what it did not open. Handles, caches and snapshots may be taken and
 * released in a section, and outlive it.
 *
 * Other calls in an open section. All may be made, and the section stays open. A write does not wait
 * for memory, because it might wait for its own section: if the retired bytes exceed the budget, it
 * collects, and then fails with WEIR_RESOURCE_EXHAUSTED. weir_reclaim_flush() fails with
 * WEIR_FAILED_PRECONDITION. A call that sleeps, such as that of a queue, sleeps with the section
 * open. What is destroyed or replaced meanwhile stays valid until the section ends.
 *
 * Threads. A section belongs to the thread that began it; values may be passed to other threads,
 * which must have finished with them before the section ends. A section that a thread leaves open
 * ends with the thread, and must not be used afterwards, nor in destructors of thread-specific
 * data. In the child of a fork, the sections of the forking thread stay open, and those of other
 * threads have ended. longjmp() out of a section leaves it open.
 *
 * Signal handlers. What a handler is shown in a section that it did not begin is valid until the handler
 * returns.
 *
 * Ordering. Peeks and snapshots are linearizable, as weir_var_read() and weir_var_snapshot() are.
 *
 * Source: read-side sections are those of RCU; intervals of eras, as lib/weir/reclaim/section.h says,
 * bound what a stopped thread pins.
 * @since 0.1
 */
#ifndef WEIR_READ_SECTION_H
#define WEIR_READ_SECTION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/*
 * All fields except the first are private, and 0 before the first begin. The layout is part of the
 * binary interface: programs contain the inlined code of the calls below.
 */
typedef struct weir_read_section {
	size_t struct_size;       /* WEIR_READ_SECTION_INIT sets it */
	const uint64_t *era;      /* the current era */
	const uint64_t *reserved; /* the last era that is reserved; leads to 0: ask the library */
	uint32_t stamp_at;        /* weir_version_stamp_at, for programs with earlier headers */
	uint32_t read_at;         /* the same of what handles show: 8 bytes behind it */
	void *record;
	uint64_t outer;
	uint64_t depth;
} weir_read_section;
#define WEIR_READ_SECTION_INIT WEIR_STRUCT_SIZE(weir_read_section)

/*
 * Begins a section.
 *
 * Errors: WEIR_INVALID_ARGUMENT if `section` is NULL or was not initialized with
 * WEIR_READ_SECTION_INIT. WEIR_FAILED_PRECONDITION if this section is open. WEIR_RESOURCE_EXHAUSTED
 * if there is no memory for this thread's record; peeks then return NULL, and the end is refused.
 * @since 0.1
 */
WEIR_API enum weir_status weir_read_section_begin(weir_read_section *section);

/*
 * In a version: where its stamp is, in bytes. Private, and part of the binary interface. It is a constant, so
 * that compilers load it once for many peeks: no atomic access keeps them from it, as with a field of the section.
 */
WEIR_API extern const size_t weir_version_stamp_at;

/*
 * What weir_read_section_peek() does, as a function of the library: for other languages, and for
 * the moments when the inlined code cannot tell.
 * @since 0.1
 */
WEIR_API const weir_read *weir_read_section_find(const weir_read_section *section, weir_var *var);

/*
 * Returns the newest version of the variable. It is not a handle: there is nothing to release. It is
 * valid until the section ends. Returns NULL if the variable is not initialized, if `var` is NULL,
 * if the section has ended, and if the begin found no memory. Another thread than that which began
 * the section must not call this while the section is open. A section that was never begun must not
 * be passed.
 * @since 0.1
 */
static inline const weir_read *weir_read_section_peek(const weir_read_section *section,
                                                      weir_var *var)
{
#if defined(__GNUC__) && UINTPTR_MAX > UINT32_MAX
	if (__builtin_expect(!!var, 1)) {
		/* The order of the loads matters: lib/weir/var/read_section.c. */
		uint64_t reserved = __atomic_load_n(section->reserved, __ATOMIC_ACQUIRE);
		const char *version = __atomic_load_n(
			WEIRI_CAST(const char *const *, WEIRI_CAST(const void *, var)), __ATOMIC_SEQ_CST);

		if (__builtin_expect(__atomic_load_n(section->era, __ATOMIC_RELAXED) <= reserved, 1)) {
			/* What handles show is behind the stamp. The stamp is 0 or -1 if it may not be shown. */
			const int64_t *stamp = WEIRI_CAST(
				const int64_t *, WEIRI_CAST(const void *, version + weir_version_stamp_at));
			const weir_read *read =
				WEIRI_CAST(const weir_read *, WEIRI_CAST(const void *, stamp + 1));

			if (__builtin_expect(__atomic_load_n(stamp, __ATOMIC_ACQUIRE) > 0 && read->tensor, 1))
				return read;
		}
	}
#endif
	return weir_read_section_find(section, var);
}

/*
 * Shows the versions that vars[0 .. count-1] have at one instant during the call: reads[i] is that of
 * vars[i]. As with a peek there is nothing to release, and all are valid until the section ends. It
 * pins nothing beyond what a peek at the same moment pins. It stops no other thread. It starts again
 * as weir_var_snapshot() does: if a variable has a version that is newer than the clock, and further
 * only if, while it is under way, an era begins (with a collection or ahead of one, or with a grace period
 * of weir/urcu.h) and afterwards one of the variables changes twice. A variable may occur twice. count 0
 * succeeds. On any failure all reads[i] are NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if `section`, `vars`, `reads` or a variable is NULL.
 * WEIR_FAILED_PRECONDITION if the section is not open, if another thread began it, or if a variable is
 * not initialized. *error names the variable.
 *
 * Source: that of weir_var_snapshot(): lib/weir/var/snapshot.c.
 * @since 0.1
 */
WEIR_API enum weir_status weir_read_section_snapshot(const weir_read_section *section,
                                                     weir_var *const vars[], size_t count,
                                                     const weir_read *reads[], weir_error *error);

/*
 * Ends the section: what it has shown is no longer valid.
 *
 * Errors, after which nothing has happened: WEIR_INVALID_ARGUMENT if `section` is NULL.
 * WEIR_FAILED_PRECONDITION if the section is not open, if another thread began it, or if a section
 * that this thread began later is still open.
 * @since 0.1
 */
WEIR_API enum weir_status weir_read_section_end(weir_read_section *section);

/*
 * What the inlined begin and end know of a thread. Private; the layout is part of the binary
 * interface.
 */
struct weir_reader {
	uint64_t others[8];
	uint64_t lo;     /* the first era that is reserved; 0 outside of sections */
	uint64_t hi;     /* the last one */
	uint64_t fenced; /* while this is the era, a begin needs no fence; not 0: an end needs none */
	uint64_t shut;   /* is 0; an ended section that may begin again on this thread leads to it */
	uint32_t open;   /* how many sections are open */
	uint32_t poke;   /* not 0: wake a writer at the end */
};

/*
 * The inlined begin and end, in programs for x86-64. The first begin of a section on a thread, and all
 * that is unusual, is left to the functions. So are all calls in shared libraries and plug-ins, which
 * would need a call to find the thread, and those on other machines: there, compilers keep the address of
 * a thread-local over calls, and a coroutine may continue on another thread.
 */
#if defined(__GNUC__) && defined(__x86_64__) && defined(__LP64__) && \
	(!defined(__PIC__) || defined(__PIE__))

/* Of the calling thread; NULL before its first call of Weir. */
WEIR_API extern __thread struct weir_reader *weir_reader_mine;

/* The same as weir_read_section_begin() and _end(), never inlined. */
WEIR_API enum weir_status weir_read_section_begin_by_call(weir_read_section *section);
WEIR_API enum weir_status weir_read_section_end_by_call(weir_read_section *section);

/*
 * The order of the accesses matters: lib/weir/var/read_section.c. That `era` and `reserved` are asked
 * for is for gcc: where it knows that a section was never begun, it would warn of what cannot happen.
 */
extern inline __attribute__((gnu_inline)) enum weir_status weir_read_section_begin(
	weir_read_section *section)
{
	struct weir_reader *reader = weir_reader_mine;

	if (__builtin_expect(section && section->era &&
	                         WEIRI_ADDRESS(section->reserved) ==
	                             WEIRI_ADDRESS(reader) + offsetof(struct weir_reader, shut) &&
	                         __atomic_load_n(&reader->lo, __ATOMIC_RELAXED) == 0,
	                     1)) {
		uint64_t era = __atomic_load_n(section->era, __ATOMIC_SEQ_CST);

		__atomic_store_n(&reader->hi, era, __ATOMIC_RELEASE);
		__atomic_store_n(&reader->lo, era, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&reader->fenced, __ATOMIC_RELAXED) == era, 1)) {
			__atomic_store_n(&reader->open, 1u, __ATOMIC_RELAXED);
			section->reserved = &reader->hi;
			return WEIR_OK;
		}
		__atomic_store_n(&reader->lo, 0u, __ATOMIC_RELEASE);
	}
	return weir_read_section_begin_by_call(section);
}

extern inline __attribute__((gnu_inline)) enum weir_status weir_read_section_end(
	weir_read_section *section)
{
	struct weir_reader *reader = weir_reader_mine;

	if (__builtin_expect(section && section->reserved &&
	                         WEIRI_ADDRESS(section->reserved) ==
	                             WEIRI_ADDRESS(reader) + offsetof(struct weir_reader, hi) &&
	                         __atomic_load_n(&reader->open, __ATOMIC_RELAXED) == 1 &&
	                         __atomic_load_n(&reader->fenced, __ATOMIC_RELAXED) != 0 &&
	                         section->outer == 0,
	                     1)) {
		section->reserved = &reader->shut;
		__atomic_store_n(&reader->open, 0u, __ATOMIC_RELAXED);
		__atomic_store_n(&reader->lo, 0u, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&reader->poke, __ATOMIC_RELAXED) == 0, 1))
			return WEIR_OK;
		/* The library's end wakes the writer. */
		(void)weir_read_section_begin_by_call(section);
	}
	return weir_read_section_end_by_call(section);
}
#endif

WEIR_END_DECLS

#endif
