/*
 * session.h - runs parts of a graph, from any number of threads at once.
 *
 * A call of weir_session_run() is one step. It feeds some outputs, runs what the fetches and
 * targets need and nothing else, and returns the fetched tensors. Steps share only variables and
 * queues, and nothing else orders them. Use one session for all threads of a program. A kernel
 * should not block for long, because it holds a worker. For a part of a graph that runs again and
 * again, and for runs that no call waits for, see weir/flow/callable.h.
 *
 * | call             | threads   | progress         | blocks on         | allocates | signal-safe |
 * |------------------|-----------|------------------|-------------------|-----------|-------------|
 * | weir_session_create | any    | system           | thread creation   | yes       | no          |
 * | weir_session_run, _run_named, _run_target | any | lock-free (1) | its ops (2) | yes | no      |
 * | weir_queue_runner_from_nodes | any | allocator | allocator         | yes       | no          |
 * | weir_session_close | any     | lock-free + hooks | nothing          | no        | no          |
 * | weir_session_destroy | one, last | blocking     | steps and kernels under way | no | no       |
 *
 * (1) Until an op waits. Steps share no lock: a thread stalled inside a step delays that step only.
 *     A worker that is stalled inside a kernel runs no other task of the pool. The matrix product
 *     calls CBLAS if Weir was built with it; see weir/flow/op.h.
 * (2) Up to the deadline.
 *
 * Ordering. What a thread wrote before weir_session_run() is visible to the ops of the step, and
 * what they wrote is visible to the caller. An op starts after all its inputs and control inputs
 * have succeeded. Ops without an edge between them run in any order, or in parallel; the session
 * option shuffle_seed shows whether a graph lacks an edge.
 */
#ifndef WEIR_SESSION_H
#define WEIR_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/flow/graph.h>
#include <weir/flow/tensor_queue.h>
#include <weir/flow/trace.h>
#include <weir/pool.h>
#include <weir/queue_runner.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_session weir_session;

/* flags: no workers; every step runs on its caller's thread */
enum weir_session_flags { WEIR_SESSION_NO_THREADS = 1 };

struct weir_session_options {
	size_t struct_size; /* WEIR_SESSION_OPTIONS_INIT sets it */
	weir_pool *pool;    /* borrowed, must outlive the session; NULL: a pool of the session's own */
	/* workers of its own pool; 0: one per online processor. Must be 0 with `pool` */
	size_t threads;
	uint32_t flags;
	uint64_t operation_timeout_ns; /* of each run with WEIR_NO_DEADLINE; 0: no limit */
	/*
	 * For plans, steps and results; NULL: the default allocator. A result may also be in memory that
	 * came into the step as a value, from a queue or a kernel. Some memory is freed only by a later
	 * weir_reclaim_flush().
	 */
	const weir_allocator *allocator;
	/*
	 * Not 0: whenever several nodes of a step are ready, a random one of them runs next, so that a
	 * missing edge shows. The draws follow from this seed and the number of the step, counted from
	 * the creation of the session. One thread that runs the same steps with the same seed and
	 * WEIR_SESSION_NO_THREADS gets the same orders again. Choosing takes time linear in the number
	 * of ready nodes: use it in tests. 0: no draws; the order is not specified.
	 */
	uint64_t shuffle_seed;
	weir_trace *trace; /* every run is recorded in it (weir/flow/trace.h); NULL: none */
};
#define WEIR_SESSION_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_session_options)

/*
 * Creates a session on `graph`, which must outlive it. options may be NULL. Errors:
 * WEIR_INVALID_ARGUMENT if an argument is NULL, struct_size is wrong, a flag is unknown, or threads
 * is given together with pool or WEIR_SESSION_NO_THREADS. WEIR_RESOURCE_EXHAUSTED. And the errors
 * of weir_pool_create().
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_create(weir_graph *graph,
                                              const struct weir_session_options *options,
                                              weir_session **out, weir_error *error);

/* In one run `value` replaces `output`; nodes that only this output needs do not run. */
struct weir_feed {
	weir_output output;
	weir_tensor *value; /* stays the caller's */
};

/*
 * Runs one step: the ancestors (by data and control) of fetches and targets, cut at the feeds. The
 * rest of the graph does not run, ops with side effects included. Each of results[0 ..
 * fetch_count-1] is a reference that the caller releases; on any failure none is written. A fed
 * output may be fetched, and a fetch may occur twice. Arrays may be NULL if their count is 0.
 *
 * The run ends at deadline_ns (absolute; if it has passed, as 0 has, nothing runs), or when
 * `cancel` fires (may be NULL; the run takes its own reference). A step that neither waits nor has
 * user kernels looks at both when it begins, and then before each costly op and after at most 64
 * others. With WEIR_NO_DEADLINE the
 * session's operation_timeout_ns bounds it, counted from this call.
 *
 * The plan of the step is compiled at the first use of the same feeds, fetches and targets in the
 * same order, in time linear in the nodes and edges, and kept. A session keeps 1,024 plans; those
 * of further signatures are compiled for each run. A plan keeps the memory of one step, so runs one
 * after the other allocate none for it.
 *
 * The step holds each value until its last use. An elementwise op writes over an operand if this is
 * its last use and nobody else has a reference to it.
 *
 * The first error ends the step: ops that have not started do not start, ops that wait are
 * cancelled, and the message names the op that failed first. What ops have already done to
 * variables and queues stays done. Errors:
 *  - The status and message of an op, prefixed with op and node name: WEIR_OUT_OF_RANGE of a
 *    drained queue, WEIR_ABORTED of a commit, and so on (weir/flow/op.h).
 *  - WEIR_INVALID_ARGUMENT if an argument is NULL, an output or target is of another graph, an
 *    output is fed twice, a value does not fit the dtype or shape of its output, or a required
 *    placeholder is not fed.
 *  - WEIR_DEADLINE_EXCEEDED; the message names an op that was waiting. Cancelled queue ops lose no
 *    item.
 *  - WEIR_CANCELLED if the session was closed; if `cancel` fired, the status of its cause.
 *  - WEIR_FAILED_PRECONDITION if the session was closed before the call, the graph has no nodes, or
 *    a critical section of the graph was not finished.
 *  - WEIR_RESOURCE_EXHAUSTED.
 *
 * After a deadline, a cancel or an error the call waits until the ops of the step have ended.
 * Built-in ops end immediately, once a computation under way is finished. There is one exception:
 * after a deadline or a cancel, the call does not wait for a step with user kernels
 * (weir/flow/kernel.h). It then returns in time, and the kernels, which can poll the token, end in the
 * background; weir_session_destroy() waits for them.
 *
 * The call may be made inside a user kernel; the waiting caller then runs other tasks of the pool,
 * and returns after its deadline if such a task takes longer. With a pool without workers, user
 * kernels run on the caller's thread, so that a deadline cannot interrupt one.
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_run(weir_session *session, const struct weir_feed feeds[],
                                           size_t feed_count, const weir_output fetches[],
                                           size_t fetch_count, weir_tensor *results[],
                                           weir_node *const targets[], size_t target_count,
                                           uint64_t deadline_ns, weir_cancel *cancel,
                                           weir_error *error);

/* A feed by name; see weir_graph_find_output(). */
struct weir_named_feed {
	const char *name;
	weir_tensor *value; /* stays the caller's */
};

/*
 * Like weir_session_run(), with names in place of outputs and nodes: feeds and fetches as in
 * weir_graph_find_output(), targets as in weir_graph_find(). Each call looks all names up; use
 * weir_session_run() where that costs too much.
 *
 * Errors: WEIR_NOT_FOUND if the graph has no such node. WEIR_OUT_OF_RANGE if a node has no such
 * output. WEIR_INVALID_ARGUMENT if a name is NULL. These messages say which feed, fetch or target
 * it was, and nothing has run. And the errors of weir_session_run().
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_run_named(weir_session *session,
                                                 const struct weir_named_feed feeds[],
                                                 size_t feed_count, const char *const fetches[],
                                                 size_t fetch_count, weir_tensor *results[],
                                                 const char *const targets[], size_t target_count,
                                                 uint64_t deadline_ns, weir_cancel *cancel,
                                                 weir_error *error);

/* The context of weir_session_run_target(): what it runs, where. Both must outlive the runner. */
struct weir_session_target {
	weir_session *session;
	weir_node *target;
};

/*
 * Runs one step for a target, without feeds and fetches. It is a weir_queue_runner_fn
 * (weir/queue_runner.h), so that a queue runner can run a node of a graph:
 *     struct weir_session_target fill = {session, enqueue};
 *     struct weir_queue_runner_step step = {weir_session_run_target, &fill, "fill"};
 *
 * session_target is a struct weir_session_target. The step ends when `cancel` (may be NULL) fires.
 * The session's operation_timeout_ns applies. Errors: as for weir_session_run(), but WEIR_CANCELLED
 * also if the session was closed before the call, because a session that closes ends the input.
 * WEIR_INVALID_ARGUMENT if session_target or one of its fields is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_run_target(void *session_target, weir_cancel *cancel,
                                                  weir_error *error);

/*
 * Creates a queue runner that runs each of nodes[0 .. count-1], on `threads` threads each (0: 1),
 * until one of them ends as weir/queue_runner.h says; usually they enqueue into `queue`. The end of
 * the input closes the queue with WEIR_CLOSE_DRAIN, a stop with WEIR_CLOSE_CANCEL. Start, join and
 * destroy it with the calls of weir/queue_runner.h, before the session is destroyed:
 *     status = weir_queue_runner_from_nodes(session, &enqueue, 1, 4, queue, NULL, &runner, &error);
 *     status = weir_queue_runner_start(runner, coordinator, &error);
 *
 * A thread runs its node as weir_session_run_target() does, and has the node's name. options may be
 * NULL; of its fields, flags, end_codes, name (NULL: that of the queue) and allocator are used, and
 * all others must be 0. Errors: WEIR_INVALID_ARGUMENT if an argument or a node is NULL, count is 0, a
 * node is of another graph than the session's, or an option is set that must be 0; and those of
 * weir_queue_runner_create().
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_from_nodes(
	weir_session *session, weir_node *const nodes[], size_t count, size_t threads,
	weir_tensor_queue *queue, const struct weir_queue_runner_options *options,
	weir_queue_runner **out, weir_error *error);

/*
 * Cancels every step under way (they end with WEIR_CANCELLED) and refuses later ones; the messages
 * have the cause (may be NULL; the first is kept). Does not wait. Variables and queues do not
 * change. Idempotent. Errors: WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_close(weir_session *session, const weir_error *cause);

/*
 * Closes the session, waits for steps that still run, also in the background, and frees it. No other
 * call on the session may start or be under way, with one exception: runs of which an op has begun,
 * since these are waited for. (A run that has only been called may still look at the session after
 * it was freed, to find that it is closed.) Accepts NULL. Errors: WEIR_FAILED_PRECONDITION, and
 * nothing happens, inside a kernel, or while a callable or run handle of the session is not released.
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_destroy(weir_session *session, weir_error *error);

WEIR_END_DECLS

#endif
