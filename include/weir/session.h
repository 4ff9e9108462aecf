/*
 * session.h - runs parts of a graph, from any number of threads at once.
 *
 * A call of weir_session_run is one step: it feeds some outputs, runs what the fetches and targets need and nothing else, and
 * hands the fetched tensors out. Steps share variables and queues and nothing else; there is no order between them but the one
 * those give. Use one session for all threads of a program. Not for code that blocks inside a kernel for long: it holds a worker.
 *
 * | call                 | threads | progress                          | blocks on                  | allocates | signal-safe |
 * |----------------------|---------|-----------------------------------|----------------------------|-----------|-------------|
 * | weir_session_create  | any     | system                            | thread creation            | yes       | no          |
 * | weir_session_run     | any     | lock-free (1), until an op waits  | its ops, up to the deadline | yes      | no          |
 * | weir_session_close   | any     | lock-free + the hooks it runs     | nothing                    | no        | no          |
 * | weir_session_destroy | one, last | blocking                        | steps and kernels under way | no       | no          |
 *
 * (1) Steps share no lock: a thread stopped inside a step stops that step only (a pool worker stopped inside a kernel keeps
 * that worker). The matrix product calls CBLAS when built with it; see weir/op.h.
 *
 * Ordering: what was written before weir_session_run is visible to the step's ops, and what they wrote to its caller. An op
 * starts after all its inputs and control inputs ended well; ops without an edge between them run in any order or at once.
 */
#ifndef WEIR_SESSION_H
#define WEIR_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/graph.h>
#include <weir/pool.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_session weir_session;

enum { WEIR_SESSION_NO_THREADS = 1 }; /* flags: no workers of its own; every step runs on its caller's thread */

struct weir_session_options {
	size_t struct_size; /* sizeof(struct weir_session_options) */
	weir_pool *pool;    /* borrowed, must outlive the session; NULL: a pool of the session's own */
	size_t threads;     /* workers of its own pool; 0: one per online processor. Must be 0 with `pool` */
	uint32_t flags;
	uint64_t operation_timeout_ns; /* of each run that has no deadline of its own; 0: none */
	/* NULL: the default one; serves steps and results. Some of it comes back only with a later weir_reclaim_flush. */
	const weir_allocator *allocator;
};

/*
 * A session on `graph`, which must outlive it. options may be NULL. WEIR_INVALID_ARGUMENT (NULL, bad struct_size, unknown
 * flag, threads together with pool or WEIR_SESSION_NO_THREADS), WEIR_RESOURCE_EXHAUSTED, and the statuses of weir_pool_create.
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_create(weir_graph *graph, const struct weir_session_options *options,
                                              weir_session **out, weir_error *error);

/* `value` stands for `output` in one run; what would have computed it does not run for its sake. */
struct weir_feed {
	weir_output output;
	weir_tensor *value; /* stays the caller's */
};

struct weir_run_options {
	size_t struct_size; /* sizeof(struct weir_run_options) */
	/* Absolute; 0: operation_timeout_ns from now, if the session has one. WEIR_NO_DEADLINE: none at all. */
	uint64_t deadline_ns;
	weir_cancel *cancel; /* NULL: none. A reference is taken for as long as needed */
	uint32_t flags;      /* must be 0 */
};

/*
 * One step. Runs the ancestors (by data and control) of fetches and targets, cut at the feeds; the rest of the graph, ops with
 * side effects included, does not run. results[0 .. fetch_count-1] get one reference each, the caller's to release; on any
 * failure none is written. A fed output may be fetched; a fetch may occur twice. Arrays may be NULL when their count is 0.
 * options may be NULL.
 *
 * The step's plan is compiled on first use of the same feeds, fetches and targets in the same order, and kept.
 *
 * The first error ends the step: ops that have not started do not start, ops that wait are cancelled, and the message names the
 * op that failed first. What ops did before (to variables, to queues) stays done. Errors:
 *  - of an op: its status and message, prefixed with the op and node name (WEIR_OUT_OF_RANGE of a closed queue, WEIR_ABORTED of
 *    a commit that lost, and so on; weir/op.h);
 *  - WEIR_INVALID_ARGUMENT: NULL, an output or target of another graph, the same output fed twice, a value that does not fit the
 *    output's dtype or shape, a placeholder that is needed and not fed;
 *  - WEIR_DEADLINE_EXCEEDED: the message names an op that was waiting. Cancelled queue ops have lost nothing;
 *  - WEIR_CANCELLED: weir_session_close, or options->cancel fired (then its cause's status);
 *  - WEIR_FAILED_PRECONDITION: the session was closed before the call;
 *  - WEIR_RESOURCE_EXHAUSTED.
 *
 * After a deadline, a cancel or an error the call waits for the step's ops to end, which built-in ops do at once (a computation
 * under way is finished). A step with user kernels (weir_op_kernel) is not waited for after a deadline or a cancel: the
 * call returns in time, and the kernels, which have the token to look at, end in the background; weir_session_destroy waits for
 * them.
 *
 * May be called from inside a user kernel; the waiting caller then runs other tasks of the pool meanwhile. With a pool that
 * has no workers user kernels run on the caller's thread, so that a deadline cannot cut one short.
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_run(weir_session *session, const struct weir_feed feeds[], size_t feed_count,
                                           const weir_output fetches[], size_t fetch_count, weir_tensor *results[],
                                           weir_node *const targets[], size_t target_count,
                                           const struct weir_run_options *options, weir_error *error);

/*
 * Cancels every step under way (they end with WEIR_CANCELLED) and refuses later ones. Does not wait. Variables and queues stay
 * as they are. Idempotent. WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_close(weir_session *session);
/*
 * Closes, waits for steps that still run or drain in the background, and frees. No call of weir_session_run may start or be
 * under way on another thread unless the session was closed before. WEIR_FAILED_PRECONDITION, and nothing happens, inside a
 * kernel. NULL: WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_destroy(weir_session *session, weir_error *error);

WEIR_END_DECLS

#endif
