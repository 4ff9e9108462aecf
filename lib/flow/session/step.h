/*
 * step.h - one run of a plan by a session: what fails, what stops it, and who waits for it.
 *
 * A step is one allocation: this struct with its frame, and the parts of the frame. It has several
 * users: its caller, the threads that execute it, and the cancel hooks that may still access it. The
 * last user ends it. Its memory then becomes the spare one of the plan, or is freed. A step is inside
 * the session's gate until then. If it is of a callable, the callable is inside, and the step has a
 * reference to the callable.
 *
 * How a step fails. There are two cells. Each is written at most once, by the first thread that
 * claims it, which then fires the step's token:
 *   failure   an op failed by itself
 *   stop      the session was closed, the caller's token fired, or the deadline passed
 * If an op fails after `stop` was set, the stop is taken as the reason. The op's node is then
 * recorded as the culprit, which the message names, and `failure` stays unset. A node that fails or
 * is skipped marks the step incomplete before its unit ends, so no node runs without its inputs. A
 * step whose nodes have all succeeded has succeeded too, however late a stop came.
 *
 * The thread that claims `stop` may stall before it has stored its cause. The step is stopped all the
 * same by the next thread that stops it. Then the cause is told from where it came: a token, or the
 * clock (tell_unstored_stop()).
 *
 * How a step stops. A node reads one word, `halted`, before it runs. A failure and a stop set it.
 * The tokens and the clock are read by a thread that runs nodes when it begins, and again after
 * nodes that together may take a microsecond (WEIRI_LOOK_WEIGHT). Before a step waits, hands work to
 * another thread, or runs user code that may take long, it connects the tokens of the session and the
 * caller to itself, so that a fire stops it at once; and the caller waits with the deadline. A step
 * that does none of this has no hooks. The first thread that needs them puts them on. Others do not
 * wait for it: if it stalls meanwhile, only this step hears of a stop late.
 *
 * Invariants
 *   S1  `remaining` reaches zero once, after every node ended, failed or was skipped; a straight frame
 *       does not count, and its loop ends then
 *   S2  a unit releases its successors after the outputs of its nodes are stored
 *   S3  each hook holds a reference. The hook releases it when it runs; if the hook is removed
 *       before it runs, the thread that removed it does
 *   S4  `halted` is set before `incomplete`
 *   S5  the hooks are put on once, by a thread that runs a part of the step which has not ended; so
 *       the thread that ends the step sees them
 */
#ifndef WEIRI_STEP_H
#define WEIRI_STEP_H

#include <stdint.h>
#include <weir/cancel.h>
#include <weir/flow/callable.h>
#include <weir/pool.h>

#include "graph/layout.h"
#include "run/countdown.h"
#include "run/handoff.h"
#include "run/signal.h"
#include "session/frame.h"
#include "session/function.h"
#include "session/plan.h"
#include "sync/delivery.h"

/* The part of a step that its caller has a handle on, if no call waits for the step. */
struct weir_run {
	weir_run_done_fn *done;
	void *context;
	weir_tensor **results; /* room for them, part of the step's memory */
	struct weiri_delivery delivery;
};

/* Of the names of the nodes that called a frame. */
enum { WEIRI_PATH_SIZE = 128 };

struct weiri_step {
	weir_session *session;
	struct weiri_plan *plan;
	weir_pool *pool; /* where its tasks go */
	size_t workers;  /* of the pool; 0 if the caller runs everything */
	struct weiri_countdown references;
	struct weiri_signal signal;    /* raised for the caller: the step ended or was stopped, or the caller can help */
	struct weiri_latch halted;     /* nodes that have not begun must not run */
	struct weiri_latch incomplete; /* a node failed or was skipped */
	struct weiri_latch ended;
	bool is_started;      /* no call waits: run.done is called */
	bool is_open;         /* feeds and fetches come while it runs */
	bool on_caller;       /* the caller runs everything: tasks go to `handoff` */
	bool pool_is_foreign; /* not the session's: held until the step ends, it may end before the step's memory */
	/* Of a foreign pool: the step until it ends, and each call that helps. The last one lets go of the pool. */
	struct weiri_countdown pool_users;
	bool caller_helps; /* the caller runs tasks of the pool while it waits */
	bool may_be_left;  /* the caller need not wait for user code after a stop */
	/* NULL in a plan that neither waits nor has user code; stays with the memory until it has been used */
	weir_cancel *token;
	struct weiri_latch connected; /* claimed by the thread that puts the hooks on */
	weir_cancel *user_token;
	weir_cancel_hook *session_hook;
	weir_cancel_hook *user_hook;
	uint64_t deadline_ns;
	uint64_t started_ns;  /* 0 without a deadline */
	uint64_t shuffle;     /* seeds the order of ready units; 0: they are not shuffled */
	uint64_t random_step; /* what its random numbers depend on, if the plan draws any */
	struct weiri_frame frame;

	struct weiri_handoff handoff; /* of a step on its caller */
	struct weir_run run;          /* of a step that is started or open */
	struct weiri_latch failed;
	struct weiri_latch stopped;
	struct weiri_latch blamed;
	const weir_node *culprit; /* once `blamed` is set: a node that ended because of the stop */
	uint64_t culprit_waited_ns;
	char culprit_path[WEIRI_PATH_SIZE]; /* the way to it: "train/loop/", or "" */
	weir_error failure;
	weir_error stop;
};

/* What a step is created for. */
struct weiri_step_request {
	weir_session *session;
	struct weiri_plan *plan;
	struct weiri_fed fed;
	uint64_t deadline_ns;
	weir_cancel *cancel;
	weir_pool *pool;      /* NULL: the session's */
	uint32_t flags;       /* enum weir_run_flags */
	weir_trace *trace;    /* NULL: the session's, if it has one */
	bool awaited;         /* a call waits for the step on this thread */
	bool open;            /* the feeds come late */
	uint64_t random_step; /* 0: a number of the session */
};

/* --- step.c --- */

/*
 * Creates a step with two references: one for the caller, one for the execution. The caller has
 * entered the session's gate for the step, and the function whose body it runs; or it has a reference
 * to the callable for it. A plan that nobody keeps passes to the step. All this is given back when the
 * step is freed; if this call fails, by this call. Fails with WEIR_INVALID_ARGUMENT (a feed does not
 * fit) or WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_step_create(const struct weiri_step_request *request, struct weiri_step **out,
                                   weir_error *error);
static inline void weiri_step_retain(struct weiri_step *step)
{
	weiri_countdown_join(&step->references);
}
/* Gives back `count` references. */
void weiri_step_release(struct weiri_step *step, uint32_t count);
/* Puts hooks on the session's and the caller's tokens. If there is no memory for them, the step stops. */
void weiri_step_connect(struct weiri_step *step);
/* Removes them. */
void weiri_step_disconnect(struct weiri_step *step);
/* Frees the spare memory of the plan. No step uses it. */
void weiri_step_free_spare(struct weiri_plan *plan);

/* Returns WEIR_OK if the value fits feed i of the plan. */
enum weir_status weiri_step_check_feed(const struct weiri_plan *plan, size_t i, const weir_tensor *value,
                                       weir_error *error);
/* Records that node `index` of the frame failed with `status`. */
void weiri_step_node_failed(struct weiri_frame *frame, uint32_t index, enum weir_status status, const char *message);
/* Stops the step. Only the first cause counts. */
void weiri_step_stop(struct weiri_step *step, const weir_error *cause);
void weiri_step_stop_for_deadline(struct weiri_step *step);
/* Returns true if the step was stopped, and why can be told. */
static inline bool weiri_step_is_stopped(const struct weiri_step *step)
{
	return weiri_latch_is_set(&step->stopped) ||
	       (weiri_latch_is_claimed(&step->stopped) && weiri_latch_is_set(&step->halted));
}
/* Reads the tokens and the clock, and stops the step if one of them says so. */
void weiri_step_look(struct weiri_step *step);
/* Returns the status of a step that has ended. */
enum weir_status weiri_step_outcome(struct weiri_step *step, weir_error *error);
/* Returns the status of a step that the caller leaves before its end. */
enum weir_status weiri_step_outcome_so_far(struct weiri_step *step, weir_error *error);

/* --- execute.c --- */

/*
 * Runs the ready nodes, on the caller's thread as far as possible. Returns true if the step has
 * ended on this thread; then the reference of the execution is the caller's. Returns false if it
 * ends, or has ended, on another thread or in a completion.
 */
bool weiri_step_begin(struct weiri_step *step);
/* Submits a task of this step to the pool. After this call the step may have been freed. */
void weiri_step_submit(struct weiri_step *step, weir_task *task);

/* Runs a task of the step's pool for a caller that waits. Returns false if there was none, or the pool may be gone. */
bool weiri_step_help(struct weiri_step *step);
/*
 * Tells the units that wait for a late feed that it has come, or that it never comes, and the step is
 * stopped. Runs what becomes ready, as far as it belongs on this thread.
 */
void weiri_step_arrive_feed(struct weiri_step *step, size_t feed);
/* Continues after node `index` of the unit, which waited and has ended. Called in a task. */
void weiri_step_resume(struct weiri_frame *frame, uint32_t unit, uint32_t index);
/*
 * Runs the nodes of a child frame that has begun. Returns true if the frame has ended on this thread;
 * false if it ends on another, and then the step may have been freed. The credit is that of the
 * parent's runner.
 */
bool weiri_frame_run(struct weiri_frame *child, int32_t *credit, bool on_worker);
/* The same for a child that the thread of the site has begun for its node. */
bool weiri_site_run(const struct weiri_site *site, struct weiri_frame *child);
/* The node of the site has ended, on a thread that does not run its unit. Called in a task. */
void weiri_step_call_ended(const struct weiri_site *site);
/* Tells whether a node that runs functions must not begin another part of its work. */
bool weiri_site_must_stop(const struct weiri_site *site);

/* --- run.c --- */

/* Runs a step to its end, as weir_session_run(). */
enum weir_status weiri_step_run(const struct weiri_step_request *request, weir_tensor *results[], weir_error *error);
/*
 * As weir_session_run(), with what else the request says; its session and plan are set here. `call`
 * names the call in messages.
 */
enum weir_status weiri_session_run(const char *call, weir_session *session, struct weiri_signature *signature,
                                   struct weiri_step_request *request, weir_tensor *results[], weir_error *error);

/* --- start.c --- */

/* Tells that a started step has ended. The reference of the execution is given back. */
void weiri_step_tell(struct weiri_step *step);

/* --- wait.c --- */

/*
 * Starts the operation of node `index`. Returns true if the node has already ended, with success or
 * failure; false if it waits, and then the step may have been freed.
 */
bool weiri_wait_start(struct weiri_frame *frame, uint32_t unit, uint32_t index, const struct weiri_call *call);

#endif
