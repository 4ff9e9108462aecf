/*
 * critical_section.h - one execution at a time; waiting by deadline, token, or without a thread.
 *
 * Use it for work that must not overlap and cannot be one atomic update: a read, a computation and
 * a write of several objects, or a device. For variables alone, weir_var_update() and
 * weir_txn_run() need no exclusion, so a stalled thread delays no other. If no thread ever waits
 * for long, a mutex costs less.
 *
 * | call                | threads  | progress            | blocks on   | allocates  | signal-safe |
 * |---------------------|----------|---------------------|-------------|------------|-------------|
 * | weir_critical_section_create | any | lock-free + allocator | allocator | yes    | no          |
 * | weir_critical_section_destroy | one, last | lock-free + allocator | nothing | record (1) | no |
 * | weir_critical_section_find_or_create | any | as weir_store_* (4) | as there | yes | no        |
 * | weir_critical_section_execute | any | blocking (2)   | the holder (3), fn | to wait | no      |
 * | weir_critical_section_start | any | lock-free + allocator | nothing | yes       | no          |
 * | weir_critical_section_name, _type | any | wait-free  | nothing     | no         | yes         |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) Lock-free + fn while the section is free.
 * (3) The execution that is inside, up to the deadline.
 * (4) weir_store_find_or_create().
 *
 * What is lock-free. Exclusion is the purpose of a critical section: while an execution is inside,
 * even a stalled one, all others wait, up to their deadlines. Everything else consists of one
 * atomic word, which is the right to be inside, and of the waiting of queues (weir/queue.h).
 * Entering while it is free, leaving, starting to wait, and ending a wait by deadline or token are
 * lock-free. So a thread that is stalled before it has the right, or after it has given it back,
 * delays at most the one waiter that it was completing.
 *
 * Order. An execution that leaves lets in the waiter that has waited longest. A newcomer may enter
 * before that waiter, unless the section was created with WEIR_CRITICAL_SECTION_FAIR.
 *
 * Waiting. A thread that finds the section taken looks for up to 100 us whether it becomes free, with
 * pauses between the looks, before it waits in a queue. It does not look if the section is fair, if the
 * call has a token, or if another thread wants its processor; and it looks in one of 65 waits only,
 * as long as it finds that one execution stays inside for the whole time.
 *
 * Ordering. What an execution wrote is visible to all executions that enter later.
 *
 * weir_dump() shows the execution inside and the waiters. If another thread of the parent is inside
 * a section at a fork, the section stays taken in the child.
 *
 * Source: the critical sections of dataflow runtimes. weir_op_critical_section() (weir/flow/op.h)
 * is the node.
 */
#ifndef WEIR_CRITICAL_SECTION_H
#define WEIR_CRITICAL_SECTION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/pending.h>
#include <weir/pool.h>
#include <weir/status.h>
#include <weir/store.h>

WEIR_BEGIN_DECLS

typedef struct weir_critical_section weir_critical_section;

enum weir_critical_section_flags {
	/* flags: enter in arrival order; each waiter then costs a thread switch */
	WEIR_CRITICAL_SECTION_FAIR = 1
};

struct weir_critical_section_options {
	size_t struct_size; /* WEIR_CRITICAL_SECTION_OPTIONS_INIT sets it */
	uint32_t flags;
	const char *name;                /* copied, for messages; NULL: "critical section" */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_CRITICAL_SECTION_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_critical_section_options)

/*
 * Creates a critical section. options may be NULL. error may be NULL, here and everywhere. Errors:
 * WEIR_INVALID_ARGUMENT if out is NULL, a flag is unknown, or struct_size is wrong.
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_create(
	const struct weir_critical_section_options *options, weir_critical_section **out,
	weir_error *error);

/*
 * Destroys the section. No other thread may use it. Accepts NULL. Errors: WEIR_FAILED_PRECONDITION,
 * and nothing happens, while an execution is inside or waits in the queue.
 * @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_destroy(weir_critical_section *section,
                                                        weir_error *error);
/* The name, valid as long as the section exists; "(null)" for NULL. @since 0.1 */
WEIR_API const char *weir_critical_section_name(const weir_critical_section *section);

/*
 * The type of critical sections in a store: weir_resource_object() is a weir_critical_section.
 * @since 0.1
 */
WEIR_API const struct weir_resource_type *weir_critical_section_type(void);

/*
 * Finds the section of that name, or creates it with the options (may be NULL); if those have no
 * name, it gets this one. *out is a reference to the resource; the section is
 * weir_resource_object(*out). The section is destroyed with its last reference, so an execution
 * that is inside or waits must hold one (else the section's memory is never freed). Callers that
 * use one name get one section: their executions exclude each other, and a nested call under the
 * same name is refused.
 *
 * Errors: WEIR_INVALID_ARGUMENT if the existing section has other flags; and those of
 * weir_critical_section_create() and weir_store_find_or_create().
 * @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_find_or_create(
	weir_store *store, const char *container, const char *name,
	const struct weir_critical_section_options *options, weir_resource **out, weir_error *error);

/*
 * The function that runs inside. `error` is never NULL; it may explain a status other than WEIR_OK.
 * The function must leave by returning, not by longjmp(), pthread_exit() or an exception: only the
 * return lets the next execution in, whatever the status.
 */
typedef enum weir_status weir_critical_section_fn(void *context, weir_error *error);

/*
 * Runs fn(context, ...) on this thread as soon as no other execution is inside, and returns its
 * status. The call waits until deadline_ns (absolute; 0: only if it is free now) or until `cancel`
 * (may be NULL) fires; neither ends fn once it runs.
 *
 * Errors, if fn did not run: WEIR_FAILED_PRECONDITION if this thread is already inside the section,
 * so that the call would wait for itself (the message names the section; a fn that waits for a call
 * of another thread is not detected). WEIR_DEADLINE_EXCEEDED. WEIR_CANCELLED. WEIR_INVALID_ARGUMENT
 * (NULL). WEIR_RESOURCE_EXHAUSTED if there is no memory to wait with.
 * @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_execute(weir_critical_section *section,
                                                        weir_critical_section_fn *fn, void *context,
                                                        uint64_t deadline_ns, weir_cancel *cancel,
                                                        weir_error *error);

/*
 * The completion of an asynchronous execution, called exactly once, after it has left the section.
 * `status` is that of fn, with its message in *error if it is not WEIR_OK; or WEIR_CANCELLED or
 * WEIR_RESOURCE_EXHAUSTED if fn never ran. It runs on the pool thread that ran fn, or on the thread
 * that cancelled the execution. It must not block; it may start the next execution, any number of
 * times.
 */
typedef void weir_critical_section_done_fn(void *context, enum weir_status status,
                                           const weir_error *error);

/*
 * Like weir_critical_section_execute(), but the execution holds no thread while it waits. Once no
 * other execution is inside, fn runs as a task of `pool`, which must stay until `done` was called
 * (weir_pool_destroy() waits for a thread that still submits the task); fn may wait there as any
 * task may. The call may also be made inside the section; fn then runs after the
 * section has been left. *handle (may be NULL) is a handle to cancel with; the caller gives it back
 * with weir_pending_release(). If this call itself fails (WEIR_INVALID_ARGUMENT,
 * WEIR_RESOURCE_EXHAUSTED), `done` is not called. If the task finds no memory for its thread's
 * record, the section is left once there is memory.
 *
 * Deadlock. The execution holds the section from the moment it is free, and then needs a worker. So
 * tasks of `pool` must not wait for the same section in weir_critical_section_execute() without a
 * deadline: once all workers do, none is left to run fn and leave the section. Such tasks should
 * use this call too.
 * @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_start(weir_critical_section *section,
                                                      weir_pool *pool, weir_critical_section_fn *fn,
                                                      void *context,
                                                      weir_critical_section_done_fn *done,
                                                      weir_pending **handle, weir_error *error);

WEIR_END_DECLS

#endif
