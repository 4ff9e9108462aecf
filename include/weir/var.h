/*
 * var.h - variables: shared values that are read without blocking, with snapshots and commits.
 *
 * A variable points to its newest version: an immutable value with a number that grows by one with
 * every version. The values of a variable are tensors, or of another kind: structs of plain data, or
 * pointers (weir/value.h has the writes of these). Use a variable for state that many threads read
 * and some replace, such as parameters, tables and configuration. Do not use it to pass work: see
 * weir/queue.h.
 *
 * A thread that reads, and a thread that replaces the value:
 *
 *     weir_read now;
 *
 *     if (weir_var_read(config, &now) == WEIR_OK) {
 *         use(weir_tensor_data(now.tensor));
 *         weir_read_release(&now);
 *     }
 *
 *     status = weir_var_assign(config, next, WEIR_NO_DEADLINE, NULL, &error);
 *
 * The reader keeps its version for as long as it holds the handle, and the writer does not wait for
 * it. Which call to use:
 *
 * - a value whatever was there before: weir_var_assign(), _exchange()
 * - a value computed from the one before: weir_var_update(), _assign_add(), _compare_assign()
 * - several variables, read as of one instant: weir_var_snapshot()
 * - several variables, changed at one instant: weir_var_commit(), or weir/txn.h if the set of
 *   variables is found on the way
 * - sleep until the value changes: weir/watch.h
 *
 * | call                  | threads   | progress        | blocks on    | allocates  | signal-safe |
 * |-----------------------|-----------|-----------------|--------------|------------|-------------|
 * | weir_var_create       | any       | lock-free + allocator | allocator | yes     | no          |
 * | weir_var_destroy      | one, last | lock-free + allocator | nothing | record (2) | no         |
 * | weir_var_read, _try_read_newer | any | wait-free    | nothing      | no         | yes (2)     |
 * | weir_var_read_version | any       | wait-free (3)   | nothing      | no         | no          |
 * | weir_read_release, weir_read_release_many | any | wait-free (1) | nothing | no  | yes (2)     |
 * | weir_var_snapshot     | any       | lock-free       | nothing      | no         | no          |
 * | weir_var_assign, _compare_assign | any | lock-free (4) | budget (5) | yes       | no          |
 * | weir_var_exchange, _commit | any  | lock-free (4)   | budget (5)   | yes        | no          |
 * | weir_var_update       | any       | lock-free + fn  | budget (5)   | yes        | no          |
 * | weir_var_assign_add, _assign_sub | any | lock-free (4) | budget (5), copy (6) | yes | no      |
 * | weir_var_version      | any       | wait-free       | nothing      | no         | no          |
 * | weir_var_kind, _size, _dtype, _shape, _name, _type | any | wait-free | nothing | no | yes      |
 * | weir_var_find_or_create | any     | as weir_store_find_or_create | as there | yes | no        |
 *
 * (1) Lock-free if it drops the last reference of a version that was read without a hazard slot.
 *     The next collection frees that version, so a signal handler frees nothing.
 * (2) A thread's first call of Weir, whichever it is, allocates its record. A signal handler may
 *     call these only on a thread that has a record (see weir_reclaim_prepare_thread()) and whose
 *     thread-specific data is not being destroyed yet.
 * (3) One step for each newer version.
 * (4) After its allocation.
 * (5) While the retired bytes exceed the budget (weir/reclaim.h), up to the deadline. Also, once and for a bounded
 *     time, for a slow write that others have overtaken: see weir_var_update() and _assign_add().
 * (6) From 256 KiB on, also for the copy that another thread makes, for a bounded time.
 *
 * Bounds of the wait-free calls, on a thread that has a record. The unit is one atomic access or
 * fence; waking a writer is included.
 *
 * | call                   | at most                                                              |
 * |------------------------|----------------------------------------------------------------------|
 * | weir_var_read       | 72 + 4r; 10 with a free hazard slot and no collection or write under way |
 * | weir_var_version       | 18 + 4r                                                              |
 * | weir_var_try_read_newer | 18 + 4r if there is nothing newer, else 90 + 8r                     |
 * | weir_read_release      | 6, except as in (1)                                                  |
 *
 * Here r is the number of times that the call finds the era (docs/memory.md) moved, and must look
 * again. To be found moved r times, the era must be moved 2^(r-1) times during the call, by
 * collections and by threads that retire, so r <= 64. Calls made by a signal handler count on their own.
 *
 * Ordering. Every call is linearizable, snapshots and commits included: all versions of all
 * variables have one order, which agrees with real time. lib/weir/var/version.h has the algorithm
 * and its proof, docs/memory.md the bound on memory.
 */
#ifndef WEIR_VAR_H
#define WEIR_VAR_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>
#include <weir/store.h>
#include <weir/tensor.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_var weir_var;

/* What the values of a variable are. */
enum weir_var_kind {
	WEIR_VAR_TENSOR,  /* tensors of one dtype */
	WEIR_VAR_INLINE,  /* bytes, as many for each value; copied in and out (weir/value.h) */
	WEIR_VAR_POINTER, /* pointers with a release function (weir/value.h) */
	/* the versions of a table: only weir_table_create() makes it (weir/flow/table.h) */
	WEIR_VAR_TABLE,
};

/* The most bytes of a value of kind WEIR_VAR_INLINE. */
enum weir_var_inline_limits { WEIR_VAR_MAX_INLINE = 256 };

/*
 * A handle on one version. It pins that version and nothing else until weir_read_release(). It may
 * be passed to another thread, and may outlive the variable and the thread that took it. A copy of
 * the struct is not a second handle. The kind of the variable says which field shows the value;
 * it is valid while the handle is held.
 */
typedef struct weir_read {
	union {
		weir_tensor *tensor; /* retain it to keep it longer */
		const void *data;    /* WEIR_VAR_INLINE: the bytes, aligned to 16 */
		void *pointer;       /* WEIR_VAR_POINTER */
	};
	uint64_t version; /* >= 1 */
	void *hold;       /* private */
} weir_read;

/*
 * Ends a value of kind WEIR_VAR_POINTER, which no thread can read any more. Runs outside of
 * sections, on any thread that writes, collects or releases a handle; it must not block. `context`
 * is that of the variable's options, and must outlive the variable, its handles and its retired
 * versions (weir_reclaim_flush()).
 */
typedef void weir_pointer_release_fn(void *context, void *pointer);
/* Returns how many bytes the value of a pointer takes, for the budget (weir/reclaim.h). */
typedef size_t weir_pointer_size_fn(void *context, const void *pointer);

/*
 * The longest history. A write to a variable with a history takes one step for each version kept;
 * for the memory see docs/memory.md.
 */
enum weir_var_limits { WEIR_VAR_MAX_HISTORY = 1024 };

struct weir_var_options {
	size_t struct_size;      /* WEIR_VAR_OPTIONS_INIT sets it */
	const char *name;        /* copied, for messages; NULL: "variable" */
	enum weir_dtype dtype;   /* required for tensors; 0 for other kinds */
	const weir_shape *shape; /* every tensor must fit it; dims may be unknown; NULL: any */
	uint32_t flags;          /* must be 0 */
	/* versions kept behind the newest; 0 .. WEIR_VAR_MAX_HISTORY */
	size_t history;
	const weir_allocator *allocator; /* NULL: the default allocator */
	enum weir_var_kind kind;         /* 0: WEIR_VAR_TENSOR */
	/*
	 * WEIR_VAR_INLINE: the bytes of each value, 1 .. WEIR_VAR_MAX_INLINE. WEIR_VAR_POINTER: how many
	 * bytes each value counts in the budget, unless `measure` tells. Tensors: 0.
	 */
	size_t size;
	/* WEIR_VAR_POINTER: */
	weir_pointer_release_fn *release; /* NULL: the values need no end */
	weir_pointer_size_fn *measure;    /* called once for each write; NULL: each counts `size` */
	void *context;                    /* passed to both */
};
#define WEIR_VAR_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_var_options)

/*
 * Creates a variable. `initial` becomes version 1, and the variable takes its own reference. If
 * `initial` is NULL, the variable is not initialized yet. A variable of another kind than tensors
 * gets its initial value with weir_var_create_value().
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, an option does not suit the kind, the dtype
 * or shape is invalid, or `initial` does not fit. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_create(weir_tensor *initial,
                                          const struct weir_var_options *options, weir_var **out,
                                          weir_error *error);

/*
 * Destroys the variable. No other call on it may be under way. Handles stay valid. Accepts NULL.
 *
 * Errors, after which nothing has happened: WEIR_FAILED_PRECONDITION while an operation waits for
 * the variable or a watch is on it (weir/watch.h). WEIR_RESOURCE_EXHAUSTED if there is no memory
 * for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_destroy(weir_var *var, weir_error *error);

/*
 * Takes a handle on the newest version.
 *
 * Errors: WEIR_FAILED_PRECONDITION if the variable is not initialized, WEIR_INVALID_ARGUMENT
 * (NULL), WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 *
 * Source: hazard pointers (Michael 2004) with the reader's fence moved to the collector, and a
 * constant bound on the steps: lib/weir/var/read.c.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_read(weir_var *var, weir_read *read);

/*
 * Like weir_var_read(), if the number of the newest version is greater than `version`. Otherwise,
 * or if the variable is not initialized, the status is WEIR_WOULD_BLOCK, which was true at some
 * moment of the call.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_try_read_newer(weir_var *var, uint64_t version, weir_read *read);

/*
 * Takes a handle on version `number`, if it is the newest or in the history of the variable.
 *
 * Errors: WEIR_OUT_OF_RANGE if the version is not published yet, WEIR_NOT_FOUND if it is gone or
 * the number is 0, WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED as weir_var_read(). Without a
 * history only the newest version is found.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_read_version(weir_var *var, uint64_t number, weir_read *read);
/* Releases a handle and clears *read. Accepts NULL and a cleared handle. @since 0.1 */
WEIR_API void weir_read_release(weir_read *read);
/* Releases `count` handles. @since 0.1 */
WEIR_API void weir_read_release_many(weir_read reads[], size_t count);

/*
 * Takes handles on the versions that vars[0 .. count-1] have at one instant during the call. It
 * stops no other thread. If a variable has a version that is newer than the clock, it advances the clock
 * and starts again; the next 16 snapshots of the thread then advance the clock before they read. It starts
 * again further only if, while it is under way, an era begins (with a collection of retired memory or ahead
 * of one, or with a grace period of weir/urcu.h) and afterwards one of the variables changes twice.
 * Beside a busy writer this happens once in hundreds of writes. A variable may occur twice. count 0
 * succeeds. On any failure no handle is held.
 *
 * Errors: WEIR_FAILED_PRECONDITION if a variable is not initialized; WEIR_INVALID_ARGUMENT (NULL);
 * *error names the variable. WEIR_RESOURCE_EXHAUSTED.
 *
 * Source: versioned CAS (Wei et al., PPoPP 2021) with the clock moved on demand:
 * lib/weir/var/version.h.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_snapshot(weir_var *const vars[], size_t count, weir_read reads[],
                                            weir_error *error);

/*
 * The number of the newest version, or 0 while the variable is not initialized. A variable that has
 * been initialized stays so.
 * @since 0.1
 */
WEIR_API uint64_t weir_var_version(weir_var *var);
/* The kind given at creation; WEIR_VAR_TENSOR for NULL. @since 0.1 */
WEIR_API enum weir_var_kind weir_var_kind(const weir_var *var);
/* The bytes of each value of kind WEIR_VAR_INLINE; 0 for other kinds. @since 0.1 */
WEIR_API size_t weir_var_size(const weir_var *var);
/* The dtype given at creation; 0 for NULL, and for other kinds than tensors. @since 0.1 */
WEIR_API enum weir_dtype weir_var_dtype(const weir_var *var);
/* The shape that every value must fit, or NULL. Valid as long as the variable exists. @since 0.1 */
WEIR_API const weir_shape *weir_var_shape(const weir_var *var);
/* The name, valid as long as the variable exists; "(null)" for NULL. @since 0.1 */
WEIR_API const char *weir_var_name(const weir_var *var);

/*
 * Publishes `value` as the next version. The variable takes its own reference.
 *
 * *published, here and in every write below (may be NULL), is a handle on the very version that the
 * call published, which the caller releases. If the call fails, *published is untouched. The handle
 * costs a reference to the tensor; a write without it takes none.
 *
 * If the retired bytes of the process exceed the budget and nothing can be freed, a write waits
 * until deadline_ns and then returns WEIR_RESOURCE_EXHAUSTED, having published nothing. In a read
 * section (weir/read_section.h) it does not wait. A write that does not wait, as with the deadline 0,
 * may be refused, for a millisecond as a rule, although much could be freed: calls of membarrier(2), which find
 * that out, are rationed (docs/memory.md).
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the values of the variable are no tensors,
 * or the dtype or shape does not fit. WEIR_RESOURCE_EXHAUSTED if there is no memory for the version or
 * for this thread's record, or at the deadline (see above). WEIR_CANCELLED if an interrupt ended the
 * wait (weir/thread.h).
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_assign(weir_var *var, weir_tensor *value, uint64_t deadline_ns,
                                          weir_read *published, weir_error *error);

/*
 * Like weir_var_assign(), if the newest version has the number `expected` (0: not initialized).
 * Otherwise the status is WEIR_ABORTED, and *published has the number that was found and no tensor
 * (there is nothing to release). Numbers are never reused, so there is no ABA problem.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_compare_assign(weir_var *var, uint64_t expected,
                                                  weir_tensor *value, uint64_t deadline_ns,
                                                  weir_read *published, weir_error *error);

/*
 * Like weir_var_assign(). *replaced is a handle on the very version that this call replaced, and
 * the caller releases it; the published version has the next number. If the variable was not
 * initialized, *replaced is cleared (no tensor, version 0). On failure *replaced is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_exchange(weir_var *var, weir_tensor *value, uint64_t deadline_ns,
                                            weir_read *replaced, weir_error *error);

/*
 * Computes the next value from the current one. The function runs outside of any section, once per
 * attempt. If another writer publishes first, the attempt is discarded and the function is called
 * again with newer data. It stores in *next a reference, which becomes the variable's. A status
 * other than WEIR_OK ends the update with that status; `error`, which is never NULL, may explain it.
 */
typedef enum weir_status weir_update_fn(void *context, const weir_read *current, weir_tensor **next,
                                        weir_error *error);

/*
 * Atomic read-modify-write. *published (may be NULL) is a handle on the very version that this call
 * published, and the caller releases it.
 * Where fn takes long, other writes may be first each time. When they were first more than four times and
 * for more than a millisecond, the call asks them to give way: other writes, also one by fn itself, wait
 * until it has published, at most as long as two attempts took, 100 ms, and their deadline. Only sums that are
 * combined, and updates that have asked, do not. So a call that is stopped after it has asked delays each
 * other thread once.
 *
 * Errors: WEIR_FAILED_PRECONDITION if the variable is not initialized, the status of fn, and those
 * of weir_var_assign().
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_update(weir_var *var, weir_update_fn *fn, void *context,
                                          uint64_t deadline_ns, weir_read *published,
                                          weir_error *error);

/*
 * Adds or subtracts `delta` element by element, as an atomic update.
 *
 * Values of 256 KiB and more: updates under way at one time may be published together as one
 * version. That version contains each update once, with floating-point updates in order of arrival,
 * and each *published is a handle on it. One of the callers makes the copy. The others wait for it,
 * at most for the time of several copies, and then compute as well; so a stalled thread blocks no
 * other for ever. deadline_ns does not bound this wait. A thread that was overtaken may still read
 * `delta` after the call has returned. The library then keeps a reference to `delta`, and retires
 * it like a replaced version (weir_reclaim_flush() frees it).
 * Beside a thread that replaces the value faster than a sum is computed, the sum would never be first.
 * When others were first four times, the call therefore asks other writes to give way, as
 * weir_var_update() does; at most for 1 ms and 4 ns for each byte of the value.
 *
 * Errors, after which the update was not made: WEIR_INVALID_ARGUMENT if the dtype or shape of delta
 * does not fit, WEIR_UNIMPLEMENTED for bool, f16 and bytes, and those of weir_var_update().
 *
 * Source: lib/weir/var/combine.c.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_assign_add(weir_var *var, weir_tensor *delta,
                                              uint64_t deadline_ns, weir_read *published,
                                              weir_error *error);
WEIR_API enum weir_status weir_var_assign_sub(weir_var *var, weir_tensor *delta,
                                              uint64_t deadline_ns, weir_read *published,
                                              weir_error *error);

/*
 * One part of a commit: `value` becomes the next version of `var` if the newest has number
 * `expected`.
 */
struct weir_commit_part {
	weir_var *var;
	uint64_t expected; /* 0: not initialized */
	weir_tensor *value;
};
enum weir_commit_limits { WEIR_COMMIT_MAX_PARTS = 1024 };

/*
 * Publishes all parts at one instant, or none. published[] (may be NULL) are handles on the
 * published versions, in the order of the parts: see weir_var_assign() and
 * weir_read_release_many().
 *
 * Errors: WEIR_ABORTED if a variable had a newer version, which the message names; nothing was
 * published. WEIR_INVALID_ARGUMENT if an argument is NULL, count is 0 or above
 * WEIR_COMMIT_MAX_PARTS, a variable occurs twice, or a dtype or shape does not fit.
 * WEIR_RESOURCE_EXHAUSTED.
 *
 * Source: multi-word CAS with helping (Harris, Fraser, Pratt 2002) over versions:
 * lib/weir/var/commit.c.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_commit(const struct weir_commit_part parts[], size_t count,
                                          uint64_t deadline_ns, weir_read published[],
                                          weir_error *error);

/* -- variables by name -- */

/* The type of variables in a store: weir_resource_object() is a weir_var. @since 0.1 */
WEIR_API const struct weir_resource_type *weir_var_type(void);

/*
 * Finds the variable of that name, whatever its value, or creates it with the options and `initial`
 * (may be NULL). If the options have no name, it gets this one. *out is a reference to the
 * resource; the variable is weir_resource_object(*out). The variable is destroyed with its last
 * reference, so an operation that waits for it or watches it must hold one (else its memory is
 * never freed).
 *
 * Errors: WEIR_INVALID_ARGUMENT if the existing variable has another kind, size, dtype, shape or
 * history, or (pointers) another release function; the message says which, what it is and what was
 * requested. Else as weir_var_create() and weir_store_find_or_create().
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_find_or_create(weir_store *store, const char *container,
                                                  const char *name, weir_tensor *initial,
                                                  const struct weir_var_options *options,
                                                  weir_resource **out, weir_error *error);

WEIR_END_DECLS

#endif
