/*
 * step.h - one run of one plan.
 *
 * A step is one allocation: this struct, the values, and the state of its nodes and waits. It has
 * several users: its caller, the threads that execute it, and the cancel hooks that may still
 * access it. The last user frees it.
 *
 * How a step fails. There are two cells. Each is written at most once, by the first thread that
 * claims it, which then fires the step's token:
 *   failure   an op failed by itself
 *   stop      the session was closed, the caller's token fired, or the deadline passed
 * If an op fails after `stop` was set, the stop is taken as the reason. The op's node is then
 * recorded as the culprit, which the message names, and `failure` stays unset. A node that fails or
 * is skipped marks the step incomplete before it releases its successors, so no node runs without
 * its inputs. A step whose nodes have all succeeded has succeeded too, however late a stop came.
 *
 * Invariants
 *   S1  `remaining` reaches zero once, after every node ended, failed or was skipped
 *   S2  a node releases its successors after its outputs are stored
 *   S3  each hook holds a reference. The hook releases it when it runs; if the hook is removed
 *       before it runs, the thread that removed it does
 */
#ifndef WEIRI_STEP_H
#define WEIRI_STEP_H

#include <stdint.h>
#include <weir/cancel.h>
#include <weir/pool.h>
#include <weir/flow/session.h>

#include "session/plan.h"
#include "run/countdown.h"
#include "run/signal.h"

enum { WEIRI_NO_NODE = UINT32_MAX >> 1 };

struct weiri_step_node {
	weir_task task;
	struct weiri_step *step;
	struct weiri_countdown pending;
	uint32_t index;
	uint32_t next; /* the next node in the ready list of the thread that made this one ready */
};

/* An asynchronous operation of a node: on a queue, or to enter a critical section. */
struct weiri_wait {
	weir_task task;
	struct weiri_step *step;
	uint32_t index;                 /* of the plan node */
	struct weiri_countdown parties; /* the start and the completion; the second continues the step */
	struct weiri_countdown users;   /* of `operation`: finish() and the hook */
	struct weiri_latch done;
	weir_pending *operation;
	weir_cancel_hook *hook;
	uint64_t since_ns; /* when the operation began to wait; 0: it did not wait */
	enum weir_status status;
	weir_error error;
};

struct weiri_step {
	weir_session *session;
	const struct weiri_plan *plan;
	struct weiri_countdown references;
	struct weiri_countdown remaining; /* nodes that have not ended */
	struct weiri_signal signal;       /* raised for the caller: the step ended or was stopped, or the caller can help */
	struct weiri_latch ended;
	struct weiri_latch incomplete;
	weir_cancel *token; /* NULL in a plan that neither waits nor has user code */
	weir_cancel *user_token;
	weir_cancel_hook *session_hook;
	weir_cancel_hook *user_hook;
	uint64_t deadline_ns;
	uint64_t started_ns; /* 0 without a deadline */
	uint64_t shuffle;    /* seeds the order of ready nodes; 0: they are not shuffled */
	bool caller_helps;   /* the caller runs tasks of the pool while it waits */
	bool may_be_left;    /* the caller need not wait for user code after a stop */

	weir_tensor **values;
	weir_tensor **inputs;
	weir_read *holds;
	struct weiri_step_node *nodes;
	struct weiri_wait *waits;

	struct weiri_latch failed;
	struct weiri_latch stopped;
	struct weiri_latch blamed;
	uint32_t culprit; /* once `blamed` is set: a node that ended because of the stop */
	uint64_t culprit_waited_ns;
	weir_error failure;
	weir_error stop;
};

/* --- step.c --- */

/*
 * Creates a step with two references: one for the caller, one for the execution. The caller has
 * entered the session's gate for the step. The gate is left when the step is freed; if this call
 * fails, by this call. Fails with WEIR_INVALID_ARGUMENT (a feed does not fit) or
 * WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_step_create(weir_session *session, const struct weiri_plan *plan, const struct weir_feed feeds[],
                                   uint64_t deadline_ns, weir_cancel *cancel, struct weiri_step **out,
                                   weir_error *error);
static inline void weiri_step_retain(struct weiri_step *step)
{
	weiri_countdown_join(&step->references);
}
void weiri_step_release(struct weiri_step *step);
/* Removes the hooks from the session's and the caller's tokens. */
void weiri_step_disconnect(struct weiri_step *step);

/* Records that node `index` failed with `status`. */
void weiri_step_node_failed(struct weiri_step *step, uint32_t index, enum weir_status status, const char *message);
/* Stops the step. Only the first cause counts. */
void weiri_step_stop(struct weiri_step *step, const weir_error *cause);
void weiri_step_stop_for_deadline(struct weiri_step *step);
/* Checks the tokens and the deadline. Returns true if nodes must be skipped. */
bool weiri_step_stopping(struct weiri_step *step);
/* Returns the status of a step that has ended. */
enum weir_status weiri_step_outcome(struct weiri_step *step, weir_error *error);
/* Returns the status of a step that the caller leaves before its end. */
enum weir_status weiri_step_outcome_so_far(struct weiri_step *step, weir_error *error);

/* --- execute.c --- */

/* Runs the ready nodes, on the caller's thread as far as possible. */
void weiri_step_begin(struct weiri_step *step);
/* Submits a task of this step to the pool. After this call the step may have been freed. */
void weiri_step_submit(struct weiri_step *step, weir_task *task);
/* Continues with the successors of node `index`, which waited and has ended. Called in a task. */
void weiri_step_resume(struct weiri_step *step, uint32_t index);

/* --- wait.c --- */

/*
 * Starts the operation of node `index`. Returns true if the node has already ended, with success or
 * failure; false if it waits, and then the step may have been freed.
 */
bool weiri_wait_start(struct weiri_step *step, uint32_t index, const struct weiri_call *call);

#endif
