/*
 * critical_section.h - one execution at a time, waiting with a deadline, a cancel token, or without a thread.
 *
 * Use it for what must not overlap and cannot be one atomic update: a read, a computation and a write of several objects, a
 * device. For variables alone weir_var_update() and weir_txn_run() do without exclusion: nobody waits there for a thread that
 * was stopped. Within one thread group that never waits for long, a mutex costs less.
 *
 * | call                                 | threads | progress                                    | blocks on                      | allocates | signal-safe |
 * |--------------------------------------|---------|---------------------------------------------|--------------------------------|-----------|-------------|
 * | weir_critical_section_create         | any     | lock-free + allocator                       | allocator                      | yes       | no          |
 * | weir_critical_section_destroy        | one, last | lock-free + allocator                     | nothing                        | at a thread's first use of Weir | no |
 * | weir_critical_section_find_or_create | any     | as weir_store_find_or_create                | as there                       | yes       | no          |
 * | weir_critical_section_execute        | any     | lock-free + fn while it is free; else blocking | who is inside, up to the deadline; fn | when it waits | no |
 * | weir_critical_section_start          | any     | lock-free + allocator                       | nothing                        | yes       | no          |
 * | weir_critical_section_op_cancel      | any     | lock-free + the completion                  | nothing                        | at a thread's first use of Weir | no |
 * | weir_critical_section_op_release     | any     | wait-free + allocator                       | nothing                        | no        | no          |
 * | weir_critical_section_name, _type    | any     | wait-free                                   | nothing                        | no        | yes         |
 *
 * What is lock-free and what is not. Exclusion is what a section is for: while a thread is inside, also one that is stopped
 * there, all others wait, up to their deadlines. All else of it is a queue of one item, the right to be inside (weir/queue.h):
 * entering it while it is free, leaving it, going on the list of those who wait, leaving that by deadline or token are
 * lock-free. So a thread that is stopped before it has the right, or once it has given it back, holds up nobody but, at worst,
 * the one waiter that it was carrying on at that moment.
 *
 * Who leaves lets the one go on that has waited longest; but a newcomer may come first, unless the section is made
 * WEIR_CRITICAL_SECTION_FAIR. Ordering: what was done inside is visible to all who come inside later. weir_dump() tells who is
 * inside, and who waits. In the child of a fork a section that another thread was inside of stays taken.
 * Source: the critical sections of dataflow runtimes; weir_op_critical_section (weir/op.h) is the node.
 */
#ifndef WEIR_CRITICAL_SECTION_H
#define WEIR_CRITICAL_SECTION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/pool.h>
#include <weir/status.h>
#include <weir/store.h>

WEIR_BEGIN_DECLS

typedef struct weir_critical_section weir_critical_section;
typedef struct weir_critical_section_op weir_critical_section_op;

enum {
	WEIR_CRITICAL_SECTION_FAIR = 1 /* flags: in the order in which they came; a change of threads for each that waits */
};

struct weir_critical_section_options {
	size_t struct_size; /* sizeof(struct weir_critical_section_options) */
	uint32_t flags;
	const char *name;                /* copied, for messages; NULL: "critical section" */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, unknown flag, bad struct_size), WEIR_RESOURCE_EXHAUSTED. error may be
 * NULL, here and everywhere. @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_create(const struct weir_critical_section_options *options,
                                                       weir_critical_section **out, weir_error *error);
/*
 * WEIR_FAILED_PRECONDITION, and nothing happens, while somebody is inside or waits. No other thread may be using the section.
 * NULL: WEIR_OK. @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_destroy(weir_critical_section *section, weir_error *error);
/* Its name; lives as long as the section. "(null)" for NULL. @since 0.1 */
WEIR_API const char *weir_critical_section_name(const weir_critical_section *section);

/* What critical sections are in a store: weir_resource_object() is a weir_critical_section. @since 0.1 */
WEIR_API const struct weir_resource_type *weir_critical_section_type(void);
/*
 * The section of that name: the one that is there, or a new one, made with the options (NULL: none) and, if they have none, the
 * name. *out is a reference; the section is weir_resource_object(*out), and goes with the last reference: who is inside or
 * waits must hold one (else its memory is never given back). All who ask for one name exclude each other, nested calls
 * included. WEIR_INVALID_ARGUMENT: the one that is there was made with other flags; else as weir_critical_section_create and
 * weir_store_find_or_create. @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_find_or_create(weir_store *store, const char *container,
                                                               const char *name,
                                                               const struct weir_critical_section_options *options,
                                                               weir_resource **out, weir_error *error);

/*
 * What runs inside. `error` is never NULL; it may say why a status other than WEIR_OK is returned. It leaves by returning (not
 * by longjmp, pthread_exit or an exception): that, and nothing else, lets the next one in, whatever it returns.
 */
typedef enum weir_status weir_critical_section_fn(void *context, weir_error *error);

/*
 * Runs fn(context, ...) on this thread as soon as nobody else is inside, and returns what it returned. It waits until
 * deadline_ns (absolute; 0: only if it is free at once) or until `cancel` (may be NULL) fires; neither ends fn once it runs. If
 * fn did not run: WEIR_FAILED_PRECONDITION: this thread is inside of the section already, so that the call would wait for
 * itself (the message names it; an fn that waits for another thread's call is not noticed); WEIR_DEADLINE_EXCEEDED,
 * WEIR_CANCELLED, WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED (no memory to wait with).
 * @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_execute(weir_critical_section *section, weir_critical_section_fn *fn,
                                                        void *context, uint64_t deadline_ns, weir_cancel *cancel,
                                                        weir_error *error);

/*
 * The one completion of an asynchronous execution, once it has left the section: what fn returned, with its message in *error
 * if that is not WEIR_OK; or WEIR_CANCELLED or WEIR_RESOURCE_EXHAUSTED of one that never ran. On the thread of the pool that
 * ran it, or the one that cancelled it. It must not block; it may start the next one, any number of times.
 */
typedef void weir_critical_section_done_fn(void *context, enum weir_status status, const weir_error *error);

/*
 * The same, holding no thread while it waits: once nobody else is inside fn is run as a task of `pool`, which outlives the
 * operation, and may wait there as any task may. Allowed inside of the section too: it runs after that was left. *op (out may
 * be NULL) is the caller's until weir_critical_section_op_release, and serves to cancel. When the call itself fails
 * (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED) `done` is not called. In a task that finds no memory for its thread's record
 * the section is left when there is some. It has the section from the moment at which that is free, and then wants a worker:
 * tasks of `pool` must not wait for the same section in weir_critical_section_execute() without a deadline. Once all workers
 * do, none is left to run it, and to leave. Such tasks start it, too. @since 0.1
 */
WEIR_API enum weir_status weir_critical_section_start(weir_critical_section *section, weir_pool *pool,
                                                      weir_critical_section_fn *fn, void *context,
                                                      weir_critical_section_done_fn *done,
                                                      weir_critical_section_op **op, weir_error *error);
/* Ends it with WEIR_CANCELLED unless it is inside, or over. Never blocks; idempotent. Accepts NULL. @since 0.1 */
WEIR_API void weir_critical_section_op_cancel(weir_critical_section_op *op);
/* Gives the handle back; the operation itself goes on. Accepts NULL. @since 0.1 */
WEIR_API void weir_critical_section_op_release(weir_critical_section_op *op);

WEIR_END_DECLS

#endif
