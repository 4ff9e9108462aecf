/*
 * var.h - variables: shared values whose readers never block, with snapshots and commits across many.
 *
 * A variable points to its newest version, an immutable tensor with a number that grows by one with every version. Use it for
 * state that many threads read and some replace: parameters, tables, configuration. Not for passing work (weir/queue.h).
 *
 * | call                     | threads | progress                      | blocks on                    | allocates | signal-safe |
 * |--------------------------|---------|-------------------------------|------------------------------|-----------|-------------|
 * | weir_var_create          | any     | lock-free + allocator         | allocator                    | yes       | no          |
 * | weir_var_destroy         | one, last | lock-free + allocator       | nothing                      | at a thread's first use of Weir | no |
 * | weir_var_read            | any     | wait-free                     | nothing                      | no        | yes (2)     |
 * | weir_var_read_if_newer   | any     | wait-free                     | nothing                      | no        | yes (2)     |
 * | weir_var_read_version    | any     | wait-free, a step for each newer version | nothing           | no        | no          |
 * | weir_read_release, weir_read_release_many | any | wait-free (1)            | nothing                      | no        | yes (2)     |
 * | weir_var_snapshot        | any     | lock-free                     | nothing                      | no        | no          |
 * | weir_var_assign, _compare_assign, _exchange, _commit | any | lock-free after its allocation | the retire budget, up to the deadline | yes | no |
 * | weir_var_update          | any     | lock-free + fn                | the retire budget, up to the deadline | yes | no |
 * | weir_var_assign_add, _assign_sub | any | lock-free after its allocation | the retire budget, up to the deadline; from 256 KiB on another's copy, a bounded time | yes | no |
 * | weir_var_version         | any     | wait-free                     | nothing                      | no        | no          |
 * | weir_var_dtype, _shape, _name, _type | any | wait-free                | nothing                      | no        | yes         |
 * | weir_var_find_or_create  | any     | as weir_store_find_or_create  | as there                     | yes       | no          |
 *
 * (1) Lock-free when it drops the last reference of a version that was read without a hazard slot; that is left to the next
 * collection, so that a signal handler frees nothing. (2) On a thread that has used Weir before, and whose thread-specific data
 * is not being destroyed yet: a thread's first use allocates its record, in whichever call that is; weir_reclaim_prepare_thread is one.
 *
 * Bounds of the wait-free calls, in atomic accesses, fences and the waking of a writer included, on a thread that has used Weir
 * before: weir_var_read 60 + 4r, and 9 with a free slot and nothing under way; weir_var_version 16 + 4r; weir_var_read_if_newer
 * 16 + 4r when there is nothing newer, else 76 + 8r; weir_read_release 6, but (1). r is how often the era had moved when the
 * call looked: r times takes 2^(r-1) collections that begin during it, so r <= 64. A signal handler's calls count for themselves.
 *
 * Ordering: every call is linearizable, snapshots and commits included: there is one order of all versions of all variables,
 * and it agrees with real time. Algorithm and proof head lib/var/version.h; the memory bound is in docs/memory.md.
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

/*
 * A handle on one version. It pins that version, and nothing else, until weir_read_release; it may be passed to another
 * thread, and may outlive the thread that took it and the variable. Copying the struct does not make a second handle.
 */
typedef struct weir_read {
	weir_tensor *tensor; /* valid while the handle is held; retain it to keep it longer */
	uint64_t version;    /* >= 1 */
	void *hold;          /* private */
} weir_read;

/* Each write of a variable with a history takes a step for each version kept, and memory.md says what they cost. */
enum { WEIR_VAR_MAX_HISTORY = 1024 };

struct weir_var_options {
	size_t struct_size;              /* sizeof(struct weir_var_options) */
	const char *name;                /* copied, for messages; NULL: "variable" */
	enum weir_dtype dtype;           /* required */
	const weir_shape *shape;         /* what every value must fit, may have unknown dims; NULL: any */
	uint32_t flags;                  /* must be 0 */
	uint32_t history;                /* so many versions are kept behind the newest; 0 .. WEIR_VAR_MAX_HISTORY */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * A variable; `initial` (may be NULL: not initialized yet) becomes version 1, with a reference of the variable's own.
 * WEIR_INVALID_ARGUMENT (NULL, no such dtype, bad shape, initial does not fit), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_create(const struct weir_var_options *options, weir_tensor *initial, weir_var **out,
                                          weir_error *error);
/*
 * No other call on this variable may be under way. Handles stay valid. NULL: WEIR_OK. Nothing happens with
 * WEIR_FAILED_PRECONDITION (somebody waits for it, or watches it: weir/watch.h), and WEIR_RESOURCE_EXHAUSTED (this thread's
 * first use of Weir found no memory). @since 0.1
 */
WEIR_API enum weir_status weir_var_destroy(weir_var *var);

/*
 * The newest version. WEIR_FAILED_PRECONDITION (not initialized), WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED (this
 * thread's first use of Weir found no memory for its record). Source: hazard pointers (Michael 2004) with the reader's fence
 * moved to the collector; at most a constant number of steps, see lib/var/read.c.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_read(weir_var *var, weir_read *read);
/*
 * The same if the newest version has a number above `version`; WEIR_WOULD_BLOCK when it has not (also when the variable is not
 * initialized): then that was so at some moment of the call. @since 0.1
 */
WEIR_API enum weir_status weir_var_read_if_newer(weir_var *var, uint64_t version, weir_read *read);
/*
 * Version `number` of a variable with a history, if it is the newest or one of so many before it. WEIR_OUT_OF_RANGE: not
 * published yet; WEIR_NOT_FOUND: gone, or 0; WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED as weir_var_read. Without a history
 * it finds the newest only. @since 0.1
 */
WEIR_API enum weir_status weir_var_read_version(weir_var *var, uint64_t number, weir_read *read);
/* Ends a handle and clears *read. Accepts NULL and a cleared handle. @since 0.1 */
WEIR_API void weir_read_release(weir_read *read);
/* Ends count handles. @since 0.1 */
WEIR_API void weir_read_release_many(weir_read reads[], size_t count);

/*
 * The versions of vars[0 .. count-1] at one instant during the call, without stopping anybody. It starts again only when
 * retired memory was collected and a variable changed again while it was under way, once in hundreds of writes. On any failure
 * no handle is held. A variable may occur twice. count 0 succeeds. WEIR_FAILED_PRECONDITION (one was not initialized),
 * WEIR_INVALID_ARGUMENT (NULL; which one, *error says), WEIR_RESOURCE_EXHAUSTED.
 * Source: versioned CAS (Wei et al., PPoPP 2021) with the clock moved by writers; see lib/var/version.h.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_snapshot(weir_var *const vars[], size_t count, weir_read reads[], weir_error *error);

/*
 * The number of the newest version; 0 while not initialized, so this is also the question whether it is, which once answered
 * with yes is never answered with no. @since 0.1
 */
WEIR_API uint64_t weir_var_version(weir_var *var);
/* As given at creation; 0 for NULL. @since 0.1 */
WEIR_API enum weir_dtype weir_var_dtype(const weir_var *var);
/* What every value must fit, or NULL. Lives as long as the variable. @since 0.1 */
WEIR_API const weir_shape *weir_var_shape(const weir_var *var);
/* Lives as long as the variable; "(null)" for NULL. @since 0.1 */
WEIR_API const char *weir_var_name(const weir_var *var);

/*
 * Publishes `value` (the variable takes its own reference) as the next version; *version (may be NULL) is its number.
 * When the retired bytes of the process are over the budget and nothing can be freed, a write waits until deadline_ns and then
 * answers WEIR_RESOURCE_EXHAUSTED, having published nothing. WEIR_INVALID_ARGUMENT (NULL, dtype or shape does not fit).
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_assign(weir_var *var, weir_tensor *value, uint64_t deadline_ns, uint64_t *version,
                                          weir_error *error);
/*
 * The same if the newest version is number `expected` (0: not initialized), else WEIR_ABORTED and *version (may be NULL) is the
 * number that was there. Numbers never return, so there is no ABA. @since 0.1
 */
WEIR_API enum weir_status weir_var_compare_assign(weir_var *var, uint64_t expected, weir_tensor *value,
                                                  uint64_t deadline_ns, uint64_t *version, weir_error *error);

/*
 * As weir_var_assign; *replaced is a handle on the very version that this call replaced, the caller's to release, and its own
 * version has the next number. Of a variable that was not initialized *replaced is cleared: no tensor, version 0. On failure it
 * is untouched. @since 0.1
 */
WEIR_API enum weir_status weir_var_exchange(weir_var *var, weir_tensor *value, uint64_t deadline_ns,
                                            weir_read *replaced, weir_error *error);

/*
 * Computes the next value from the current one. Runs outside of any critical section, once per attempt; an attempt that lost
 * to another writer is thrown away and fn called again with newer data. *next gets a reference that becomes the variable's.
 * A status other than WEIR_OK ends the update with it.
 */
typedef enum weir_status weir_update_fn(void *context, const weir_read *current, weir_tensor **next, weir_error *error);
/*
 * Atomic read-modify-write. *published (may be NULL) is a handle on the very version that this call published, the caller's to
 * release. WEIR_FAILED_PRECONDITION (not initialized), fn's status, and those of weir_var_assign. @since 0.1
 */
WEIR_API enum weir_status weir_var_update(weir_var *var, weir_update_fn *fn, void *context, uint64_t deadline_ns,
                                          weir_read *published, weir_error *error);
/*
 * Element by element, as weir_var_update. From 256 KiB on, updates that are under way at one time may be published together, as
 * one version: each is in it once, floats in the order of arrival, and each *published is a handle on it. Then all but one wait
 * for the copy that one makes, but no longer than for several of it: a thread that is stopped holds up nobody for ever;
 * deadline_ns is not asked for that. A thread that was overtaken may go on reading `delta` after the call: then a reference is kept,
 * as of a replaced version (weir_reclaim_flush() sees to it). After a failure the update was not made. WEIR_INVALID_ARGUMENT (dtype or shape of delta),
 * WEIR_UNIMPLEMENTED (bool, f16, bytes). Source: lib/var/combine.c. @since 0.1
 */
WEIR_API enum weir_status weir_var_assign_add(weir_var *var, weir_tensor *delta, uint64_t deadline_ns,
                                              weir_read *published, weir_error *error);
WEIR_API enum weir_status weir_var_assign_sub(weir_var *var, weir_tensor *delta, uint64_t deadline_ns,
                                              weir_read *published, weir_error *error);

/* One part of a commit: `value` becomes the next version of `var` if that is still at number `expected`. */
struct weir_commit_part {
	weir_var *var;
	uint64_t expected; /* 0: not initialized */
	weir_tensor *value;
};
enum { WEIR_COMMIT_MAX_PARTS = 1024 };
/*
 * All parts at one instant, or none. WEIR_ABORTED: a variable had moved on (the message names it); nothing was published.
 * versions[] (may be NULL) gets the numbers published, in the order of parts. WEIR_INVALID_ARGUMENT (NULL, count 0 or above
 * WEIR_COMMIT_MAX_PARTS, a variable twice, dtype or shape), WEIR_RESOURCE_EXHAUSTED.
 * Source: multi-word CAS with helping (Harris, Fraser, Pratt 2002) over versions; see lib/var/commit.c. @since 0.1
 */
WEIR_API enum weir_status weir_var_commit(const struct weir_commit_part parts[], size_t count, uint64_t deadline_ns,
                                          uint64_t versions[], weir_error *error);

/* -- variables by name -------------------------------------------------------------------------------------------------------- */

/* What variables are in a store: weir_resource_object() is a weir_var. @since 0.1 */
WEIR_API const struct weir_resource_type *weir_var_type(void);
/*
 * The variable of that name: the one that is there, whatever its value, or a new one, made with the options, their name or else
 * this one, and `initial` (may be NULL). *out is a reference; the variable is weir_resource_object(*out), and goes with the
 * last reference: who waits for it or watches it must hold one (else its memory is never given back). WEIR_INVALID_ARGUMENT:
 * one is there that was made with another dtype, shape or history; the message names which, what it is there and what was asked
 * for. Else as weir_var_create and weir_store_find_or_create. @since 0.1
 */
WEIR_API enum weir_status weir_var_find_or_create(weir_store *store, const char *container, const char *name,
                                                  const struct weir_var_options *options, weir_tensor *initial,
                                                  weir_resource **out, weir_error *error);

WEIR_END_DECLS

#endif
