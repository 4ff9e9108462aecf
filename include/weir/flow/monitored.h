/*
 * monitored.h - a session with what a long job needs around it: hooks, queue runners, checkpoints,
 * and recovery.
 *
 * Use it for a loop that runs steps until its input ends, that must be found again after a crash, or
 * whose session may be lost. A monitored session makes its session itself (`make`), restores the
 * variables from the last checkpoint, and starts the queue runners. Each run calls the hooks before
 * and after it. If a run fails because something is gone for now (WEIR_UNAVAILABLE), everything is
 * ended, made anew, and the run is repeated. For runs without all this, use weir/flow/session.h.
 *
 *     struct weir_monitored_options options = {WEIR_MONITORED_OPTIONS_INIT, .make = make};
 *     status = weir_monitored_create(&options, &monitored, &error);
 *     while (status == WEIR_OK && !weir_monitored_should_stop(monitored))
 *         status = weir_monitored_run(monitored, NULL, 0, NULL, 0, NULL, &train, 1, WEIR_NO_DEADLINE,
 *                                     NULL, NULL, &error);
 *     status = weir_monitored_close(monitored, status, &error);
 *
 * | call                  | threads   | progress         | blocks on         | allocates | signal-safe |
 * |-----------------------|-----------|------------------|-------------------|-----------|-------------|
 * | weir_monitored_create | any       | system           | make, hooks, files | yes      | no          |
 * | weir_monitored_run    | any       | lock-free + hooks (1) | its ops, hooks, files (2) | yes | no  |
 * | weir_monitored_step   | any       | lock-free + fn (1) | fn, files (2)   | to recover | no         |
 * | weir_monitored_should_stop | any  | lock-free        | nothing           | no        | no          |
 * | weir_monitored_request_stop | any | wait-free        | nothing           | no        | yes         |
 * | weir_monitored_close  | any       | blocking         | calls under way, hooks, threads, files | yes | no |
 * | weir_monitored_destroy | one, last | blocking        | as weir_monitored_close | yes | no        |
 * | weir_monitored_call_feed, _fetch | hook | allocator | allocator         | yes       | no          |
 * | weir_monitored_call_limit, _result, _session, _owner | hook | wait-free | nothing | no | no       |
 *
 * (1) Runs share no lock: a thread that stalls in a run or step delays no other. A recovery waits for
 *     all calls under way.
 * (2) While another thread recovers: that thread, up to the deadline of the run.
 *
 * Lives. The session, its coordinator and its runners are a *life*. A life begins in this order:
 * `make`; the variables are restored, or saved if there is no checkpoint yet; the runners start;
 * `after_create` of each hook. It ends in this order: the coordinator stops, and the runs under way
 * are cancelled; all calls leave; the threads are joined; `unmake`. A recovery ends the life and
 * begins the next one. The variables then have the values of the last checkpoint. Without a
 * checkpoint they keep their values, unless `make` assigns others. The queues stay open, with their
 * items; what a runner had taken from its input and could not enqueue is lost.
 *
 * What recovers. A run or step that returns one of recover_codes, also from a hook; or any failure
 * once the coordinator was stopped with such a code, which ends the runs under way at once. Each call
 * that this fails is repeated from its start in the next life: a step function and hooks may
 * therefore run more than once for one call. If `make` fails with such a code, it is called again at
 * once, so it should wait itself. Any other failure of a life to begin is returned, and the next call
 * tries again. WEIR_ABORTED recovers only if the options say so: in Weir it means that another
 * commit was first. Threads that the coordinator of the life has started, and kernels, end with the
 * life: calls there do not recover, but return the status; during a recovery, WEIR_CANCELLED.
 *
 * Hooks run on the thread of the call, in the order of the options; several at once if several
 * threads run. A hook must not call weir_monitored_run(), _step(), _close() or _destroy(): these
 * return WEIR_FAILED_PRECONDITION there. A hook that fails ends the call with its status, and with
 * its name in the message.
 *
 * Source: the monitored sessions of TensorFlow 1.x (docs/guarantees.md has what differs).
 */
#ifndef WEIR_MONITORED_H
#define WEIR_MONITORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/coordinator.h>
#include <weir/flow/callable.h>
#include <weir/flow/checkpoint.h>
#include <weir/flow/graph.h>
#include <weir/flow/session.h>
#include <weir/flow/tensor_queue.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_monitored weir_monitored;
/* One run, as its hooks see it. It ends with the run. */
typedef struct weir_monitored_call weir_monitored_call;

/*
 * Makes the session of a life, and whatever it needs. *session is the monitored session's until
 * `unmake`. Any status except WEIR_OK: there is no session to unmake.
 */
typedef enum weir_status weir_monitored_make_fn(void *context, weir_session **session,
                                                weir_error *error);
/* A function of the session of a life: `unmake`, a step, or the end of a hook. */
typedef enum weir_status weir_monitored_session_fn(void *context, weir_session *session,
                                                   weir_error *error);
typedef enum weir_status weir_monitored_begin_fn(void *context, weir_error *error);
/*
 * Threads that the hook starts with the coordinator, or registers there, are stopped and joined with
 * the life.
 */
typedef enum weir_status weir_monitored_created_fn(void *context, weir_session *session,
                                                   weir_coordinator *coordinator,
                                                   weir_error *error);
typedef enum weir_status weir_monitored_call_fn(void *context, weir_monitored_call *call,
                                                weir_error *error);

/* Functions that are called around the runs. Each may be NULL. `error` is never NULL. */
struct weir_monitored_hook {
	size_t struct_size;                      /* WEIR_MONITORED_HOOK_INIT sets it */
	const char *name;                        /* for messages; copied; NULL: its number */
	void *context;                           /* of all its functions */
	weir_monitored_begin_fn *begin;          /* once, before the first life */
	weir_monitored_created_fn *after_create; /* in each life, once it has begun */
	weir_monitored_call_fn *before_run;      /* may add feeds, fetches and a deadline */
	weir_monitored_call_fn *after_run;       /* if the run succeeded; may read its fetches */
	weir_monitored_session_fn *end;          /* once, if the loop ended cleanly */
};
#define WEIR_MONITORED_HOOK_INIT WEIR_STRUCT_SIZE(struct weir_monitored_hook)

/* A queue runner of each life; see weir_queue_runner_from_nodes(). */
struct weir_monitored_runner {
	weir_node *const *nodes; /* of the graph of the session */
	size_t node_count;
	size_t threads;           /* of each node; 0: 1 */
	weir_tensor_queue *queue; /* that the nodes fill; must outlive the monitored session */
};

/* flags: no status recovers */
enum weir_monitored_flags { WEIR_MONITORED_NO_RECOVERY = 1 };

struct weir_monitored_options {
	size_t struct_size; /* WEIR_MONITORED_OPTIONS_INIT sets it */
	uint32_t flags;
	weir_monitored_make_fn *make;      /* required */
	weir_monitored_session_fn *unmake; /* must end the session; NULL: weir_session_destroy() */
	void *context;                     /* of both */
	const struct weir_monitored_hook *const *hooks; /* copied */
	size_t hook_count;
	const struct weir_monitored_runner *runners; /* copied, the nodes too */
	size_t runner_count;
	const struct weir_checkpoint_part *variables; /* what a checkpoint has; copied, the names too */
	size_t variable_count;
	const char *path; /* of the checkpoint; copied; NULL: there is none */
	/* Besides the beginning and a clean end, a checkpoint is saved after each so many successful runs,
	   and by the first run that succeeds so long after the last one; 0: not so. A run that finds that
	   another thread writes one leaves it to that thread, which saves until nothing is due: choose a period that is
	   longer than a save. */
	uint64_t save_every_runs;
	uint64_t save_every_ns;
	/* WEIR_COORDINATOR_CLEAN() of the codes that recover; 0: WEIR_UNAVAILABLE */
	uint64_t recover_codes;
	uint64_t recover_limit;          /* how often one call recovers at most; 0: no limit */
	uint64_t grace_ns;               /* for threads that end; 0: WEIR_COORDINATOR_GRACE_NS */
	const char *name;                /* for messages; copied; NULL: "monitored session" */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_MONITORED_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_monitored_options)

/*
 * Calls `begin` of each hook and begins the first life. Errors: WEIR_INVALID_ARGUMENT if options, out
 * or make is NULL, struct_size is wrong (also of a hook), a flag is unknown, a path comes without
 * variables or the reverse, save_every_* without a path, or recover_codes names WEIR_OK or
 * WEIR_OUT_OF_RANGE. Those of weir_checkpoint_restore() for a checkpoint that is damaged or of
 * another model, those of weir_queue_runner_from_nodes(), and the status of `make` or of a hook.
 * WEIR_RESOURCE_EXHAUSTED. What had begun has then ended, except threads of a hook that outlast the
 * grace time; the queues of the runners stay open.
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_create(const struct weir_monitored_options *options,
                                                weir_monitored **out, weir_error *error);

/*
 * Runs one step as weir_session_run() does, with the hooks around it; then saves a checkpoint if one
 * is due. options, cancel and error may be NULL. Arrays may be NULL if their count is 0. The deadline
 * and `cancel` bound the run, its repetitions, and the wait for a recovery by another thread, but no
 * hook, `make` or file.
 *
 * Inside a step function the run belongs to the life of the step: it does not recover, but returns
 * the status, which the step function should return.
 *
 * Errors: as weir_session_run(). WEIR_FAILED_PRECONDITION after a stop was requested or the session
 * closed, and inside a hook. WEIR_INVALID_ARGUMENT also if one output is fed twice, with the names of
 * both hooks. The status of a hook, of a save (the run has then happened), or of a recovery that
 * failed. On any failure no result is written.
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_run(
	weir_monitored *monitored, const struct weir_feed feeds[], size_t feed_count,
	const weir_output fetches[], size_t fetch_count, weir_tensor *results[],
	weir_node *const targets[], size_t target_count, uint64_t deadline_ns, weir_cancel *cancel,
	const struct weir_run_options *options, weir_error *error);

/*
 * Calls fn(context, session, &error) and returns its status. The session is that of the life, which
 * does not end before fn has returned. Runs of it (weir_session_run()) have no hooks;
 * weir_monitored_run() inside fn has them. If what fn returns recovers, the next life begins and fn is
 * called again. Errors: those of fn; WEIR_FAILED_PRECONDITION as weir_monitored_run();
 * WEIR_INVALID_ARGUMENT if monitored or fn is NULL; the status of a recovery that failed.
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_step(weir_monitored *monitored,
                                              weir_monitored_session_fn *fn, void *context,
                                              weir_error *error);

/*
 * Returns true once a stop was requested, the coordinator of the life has stopped other than for a
 * recovery, or the session was closed; else false. true for NULL.
 * @since 0.1
 */
WEIR_API bool weir_monitored_should_stop(weir_monitored *monitored);

/*
 * Asks the loop to end; runs and steps that begin later are refused. Runs under way go on. A hook
 * gets the monitored session by weir_monitored_call_owner(). Errors: WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_request_stop(weir_monitored *monitored);

/*
 * Ends the session; `loop` is the status with which the loop ended. WEIR_OK and WEIR_OUT_OF_RANGE are
 * clean ends: the call waits for the calls under way, calls `end` of each hook, and saves a
 * checkpoint. After any other status it cancels the runs under way, and does neither. Then the life
 * ends, and the queues of the runners are closed with WEIR_CLOSE_CANCEL.
 *
 * Returns WEIR_OK after a clean end at which nothing failed. Errors:
 * - The error that a runner or a thread of the coordinator had reported.
 * - Otherwise `loop`, unless it is clean. *error is then not written, so that it still has the message
 *   of the call that failed.
 * - The status of an `end` or of the save, the first that fails.
 * - WEIR_DEADLINE_EXCEEDED if threads (*error names them) were still running after the grace time, or
 *   the status of `unmake`. The session has then not ended: close it again.
 * - WEIR_FAILED_PRECONDITION inside a hook, a step function or a kernel, and in a thread that the
 *   coordinator has started, since the close joins it. WEIR_INVALID_ARGUMENT (NULL).
 *
 * A later close returns the same.
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_close(weir_monitored *monitored, enum weir_status loop,
                                               weir_error *error);

/*
 * Frees the monitored session; one that is not closed is closed with WEIR_CANCELLED. Accepts NULL. No
 * other thread may use it. Errors: WEIR_FAILED_PRECONDITION, and nothing is freed, where close gives it,
 * or while threads have not ended (*error names them), or `unmake` fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_destroy(weir_monitored *monitored, weir_error *error);

/* -- of a run, in before_run and after_run ----------------------------------------------------- */

/*
 * Feeds an output in this run; the run takes a reference to the value. In before_run. Errors, which
 * also end the run: WEIR_INVALID_ARGUMENT if an argument is NULL, or the output is fed by the caller
 * or another hook (the message names both). WEIR_FAILED_PRECONDITION in after_run.
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_call_feed(weir_monitored_call *call, weir_output output,
                                                   weir_tensor *value, weir_error *error);

/*
 * Fetches an output in this run. *index (may be NULL) is its number for weir_monitored_call_result().
 * In before_run. Errors as for weir_monitored_call_feed().
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_call_fetch(weir_monitored_call *call, weir_output output,
                                                    size_t *index, weir_error *error);

/*
 * Bounds this run by a deadline. The earliest counts, be it of a hook or the caller. In before_run.
 * Errors: WEIR_INVALID_ARGUMENT (NULL). WEIR_FAILED_PRECONDITION in after_run.
 * @since 0.1
 */
WEIR_API enum weir_status weir_monitored_call_limit(weir_monitored_call *call, uint64_t deadline_ns,
                                                    weir_error *error);

/*
 * What weir_monitored_call_fetch() has fetched; the run owns it. NULL in before_run, and if there is
 * no such number.
 * @since 0.1
 */
WEIR_API weir_tensor *weir_monitored_call_result(const weir_monitored_call *call, size_t index);

/* The session that runs; its runs have no hooks. NULL for NULL. @since 0.1 */
WEIR_API weir_session *weir_monitored_call_session(const weir_monitored_call *call);

/* Whose run it is. NULL for NULL. @since 0.1 */
WEIR_API weir_monitored *weir_monitored_call_owner(const weir_monitored_call *call);

WEIR_END_DECLS

#endif
