/*
 * monitored.h - what the parts of a monitored session share.
 *
 *   settings.c     the options, checked and copied
 *   life.c         how a life begins and ends
 *   visit.c        a run or a step in a life, and the recovery between two lives
 *   call.c         one run with its hooks
 *   checkpoints.c  restoring and saving
 *   monitored.c    creating, stopping, closing
 *
 * Who may touch the life. A run or a step is inside the gate of the life while it uses it. The gate
 * is closed and drained before a life ends, and opened when the next one has begun. A thread changes
 * lives inside the critical section `changes`, so one at a time does, and others that find the gate
 * closed wait there, with their deadlines and tokens. If that thread fails to begin a life, the next
 * thread that comes tries again. So runs share no lock: the gate is one word, and `changes` is
 * entered only by a thread that has found the life unusable.
 *
 * Invariants
 *   M1  the session, coordinator and number of the life change only in `changes`, while the gate is
 *       closed and drained
 *   M2  inside the gate `open` is true; it is written only in `changes`, while the gate is drained
 *   M3  each life that has begun ends once, before the next one begins
 */
#ifndef WEIRI_MONITORED_H
#define WEIRI_MONITORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/critical_section.h>
#include <weir/flow/monitored.h>
#include <weir/queue_runner.h>

#include "data/turn.h"
#include "run/countdown.h"
#include "run/gate.h"
#include "run/mark.h"

enum { WEIRI_MONITORED_NAME_SIZE = 64, WEIRI_MONITORED_HOOK_NAME_SIZE = 32 };

struct weiri_hook {
	struct weir_monitored_hook calls;
	char name[WEIRI_MONITORED_HOOK_NAME_SIZE];
};

/* The options; constant. */
struct weiri_settings {
	void *block; /* what the pointers below lead to */
	size_t block_size;
	uint32_t flags;
	weir_monitored_make_fn *make;
	weir_monitored_session_fn *unmake;
	void *context;
	struct weiri_hook *hooks;
	size_t hook_count;
	struct weir_monitored_runner *runners;
	size_t runner_count;
	struct weir_checkpoint_part *variables;
	size_t variable_count;
	const char *path;
	uint64_t save_every_runs, save_every_ns;
	uint64_t recover_codes;
	uint64_t recover_limit;
	uint64_t grace_ns;
	char name[WEIRI_MONITORED_NAME_SIZE];
};

struct weiri_life {
	struct weiri_gate gate;      /* runs and steps are inside */
	struct weiri_latch replaced; /* a recovery has begun: what fails now is repeated */
	/* M1. NULL: has ended, or never was. */
	uint64_t number;
	weir_session *session;
	weir_coordinator *coordinator;
	weir_queue_runner **runners; /* room for all; the first `runner_count` exist */
	size_t runner_count;
	weir_cancel_hook *stop_hook;
	struct weiri_gate stop_told; /* the callback of the stop is inside until it has ended */
	bool open;                   /* M2 */
};

struct weir_monitored {
	weir_allocator allocator;
	struct weiri_settings settings;
	weir_critical_section *changes;
	struct weiri_life life;
	struct weiri_latch stop;   /* a stop was requested */
	struct weiri_latch closed; /* a close has begun */
	/* Of checkpoints. */
	struct weiri_turn saves;  /* one at a time is written */
	struct weiri_serial runs; /* that succeeded */
	uint64_t next_save_ns;    /* in `saves` */
	/* Of the close; in `changes`. */
	bool has_ended;         /* nothing is left to end */
	bool loop_told;         /* `loop` is known, and the hooks have ended */
	enum weir_status loop;  /* with which the loop ended */
	weir_error reported;    /* by a thread of the coordinator; code WEIR_OK: none */
	weir_error end_failure; /* of an `end` or the last save */
};

/* -- settings.c -- */

/*
 * Checks the options and copies what they lead to. Fails with WEIR_INVALID_ARGUMENT or
 * WEIR_RESOURCE_EXHAUSTED, and has then allocated nothing.
 */
enum weir_status weiri_settings_read(const struct weir_monitored_options *options, weir_monitored *monitored,
                                     weir_error *error);
void weiri_settings_free(weir_monitored *monitored);
static inline bool weiri_settings_recover(const struct weiri_settings *settings, enum weir_status status)
{
	return (unsigned)status < 64 && (settings->recover_codes >> (unsigned)status & 1u) != 0;
}

/* -- life.c: called inside `changes`, or before other threads know the monitored session -- */

/* Begins a life and opens its gate. If this fails, what had begun has ended, as far as it could. */
enum weir_status weiri_life_begin(weir_monitored *monitored, weir_error *error);
/*
 * Ends what there is of the life. It may be called again after it failed. Fails with
 * WEIR_DEADLINE_EXCEEDED if threads outlast the grace time, or with the status of `unmake`.
 */
enum weir_status weiri_life_end(weir_monitored *monitored, weir_error *error);
/* Closes the queues of the runners, as the end of the last life does. Idempotent. */
void weiri_life_close_queues(weir_monitored *monitored);
/* Closes the gate, and waits until all runs and steps have left. */
void weiri_life_drain(weir_monitored *monitored);

/* -- visit.c -- */

typedef enum weir_status weiri_visit_fn(weir_monitored *monitored, void *context, weir_error *error);

/* Calls fn inside a life, and again in the next one after a recovery. */
enum weir_status weiri_visit(weir_monitored *monitored, weiri_visit_fn *fn, void *context, uint64_t deadline_ns,
                             weir_cancel *cancel, weir_error *error);

/*
 * Returns true in threads of the life's coordinator, and in kernels. They end with the life, so they
 * can neither replace it nor wait for a thread that does. It reads nothing of the life.
 */
bool weiri_belongs_to_life(const weir_monitored *monitored);

/* What the calling thread is in: a step function, or a hook. */
enum weiri_inside_monitored { WEIRI_OUTSIDE, WEIRI_IN_STEP, WEIRI_IN_HOOK };

enum weiri_inside_monitored weiri_monitored_inside(const weir_monitored *monitored);

struct weiri_monitored_mark {
	struct weiri_mark mark;
	enum weiri_inside_monitored where;
};

void weiri_monitored_mark(struct weiri_monitored_mark *mark, const weir_monitored *monitored,
                          enum weiri_inside_monitored where);
void weiri_monitored_unmark(const struct weiri_monitored_mark *mark);

/* Returns `status`. Puts the hook's name and the place before the message, which is the hook's. */
enum weir_status weiri_hook_failed(const struct weiri_hook *hook, const char *place, enum weir_status status,
                                   weir_error *error);

/* -- checkpoints.c -- */

/* Restores the variables; or saves them, if there is no checkpoint yet. */
enum weir_status weiri_checkpoints_begin(weir_monitored *monitored, weir_error *error);
/* Counts a run that succeeded, and saves if that is due. */
enum weir_status weiri_checkpoints_run(weir_monitored *monitored, weir_error *error);
enum weir_status weiri_checkpoints_save(weir_monitored *monitored, weir_error *error);

#endif
